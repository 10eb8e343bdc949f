"""Promises, and how they are kept."""
