"""An embedded network on loopback, for the demo, development and tests. It speaks the real protocols."""
