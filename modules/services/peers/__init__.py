"""Keeps the peers and people that the SOUL knows, and how well it knows them."""
