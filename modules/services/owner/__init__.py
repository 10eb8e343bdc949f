"""The conversation with the owner."""
