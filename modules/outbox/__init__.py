"""The one door for public acts: exactly once, or not at all."""
