"""The page to watch the town and take part in it."""
