"""Manners: what the SOUL may do to others on Bluesky, as numbers with their sources, held at the door."""
