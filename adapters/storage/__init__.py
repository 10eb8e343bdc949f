"""Where larger things are kept: the local disk, or an object store."""
