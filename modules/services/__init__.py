"""The services with which the lives think and act."""
