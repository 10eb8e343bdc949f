"""Our account's choices on Bluesky: what it does not read, and whom it does not address."""
