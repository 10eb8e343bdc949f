"""The life that works on tasks of plans: it claims one at a time, does it, and reports the result."""
