"""Tools: registry and executor."""
