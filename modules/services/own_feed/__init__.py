"""The SOUL's own posts as others see them: duplicates are deleted, and reactions to each thought are read."""
