"""Rituals for all lives: their list, their threads, and the results of their runs."""
