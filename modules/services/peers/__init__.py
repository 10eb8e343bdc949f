"""Whom the SOUL knows, and how well."""
