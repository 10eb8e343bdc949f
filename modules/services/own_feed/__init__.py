"""The SOUL's own posts as others see them: duplicates taken back, and what became of each thought."""
