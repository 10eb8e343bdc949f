"""Storage for large objects: the local disk, or an object store."""
