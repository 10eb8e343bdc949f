"""Reads repositories in which nobody here works."""
