"""Pictures that a SOUL shares: redrawn for upload, kept until they have left, and recorded with their sources."""
