"""Puts the rooms of each life together, one module per life."""
