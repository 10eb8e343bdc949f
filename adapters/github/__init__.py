"""GitHub, as a SOUL reaches it."""
