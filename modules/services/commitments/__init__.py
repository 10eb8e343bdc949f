"""Stores commitments and fulfils them."""
