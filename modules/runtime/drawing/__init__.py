"""Draws pictures anew, in a process of their own with limits on memory and time."""
