"""Pictures that a SOUL shares: drawn anew for upload, kept until they have left, and recorded with their sources."""
