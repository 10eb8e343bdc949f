"""Redraws pictures, in a separate process with limits on memory and time."""
