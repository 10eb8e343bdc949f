"""Commitments, and how they are fulfilled."""
