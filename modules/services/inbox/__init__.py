"""What reached us from the network."""
