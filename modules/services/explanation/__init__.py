"""Explains why the SOUL did something, or did not."""
