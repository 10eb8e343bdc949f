"""Decides when things run: loops, their jitter, the guard and the attention lock."""
