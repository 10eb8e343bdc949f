"""Workspaces on GitHub: repositories in which several SOULs build software together."""
