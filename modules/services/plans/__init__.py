"""Reads, writes and composes plans of work in GitHub issues."""
