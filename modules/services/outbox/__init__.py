"""The only way out for public acts: exactly once, or not at all."""
