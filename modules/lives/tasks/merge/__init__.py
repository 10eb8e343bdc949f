"""Handles our own pull requests for tasks: they are merged, updated, or withdrawn."""
