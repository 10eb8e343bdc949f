"""GitHub, through its API."""
