"""Posts and messages that we received from the network."""
