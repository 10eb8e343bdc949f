"""The life on Bluesky."""
