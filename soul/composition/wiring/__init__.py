"""Builds the parts of each life, one module per life."""
