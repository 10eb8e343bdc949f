"""The Bluesky life: answers to posts, and posts of the SOUL's own."""
