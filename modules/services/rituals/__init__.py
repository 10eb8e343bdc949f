"""Rituals as every life sees them: which there are, which thread is one, and what came of their runs."""
