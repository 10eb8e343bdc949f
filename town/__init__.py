"""An embedded network on loopback for the demo, development and tests. It uses the real protocols."""
