"""Repositories by Git: clone and push."""
