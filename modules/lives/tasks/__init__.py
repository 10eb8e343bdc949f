"""Life on the tasks of plans: claims one at a time, does it, and tells how that ended."""
