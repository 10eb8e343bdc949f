"""Runs programs for the SOUL without its secrets and its network, and limits the files that they may write."""
