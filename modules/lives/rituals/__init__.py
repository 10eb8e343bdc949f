"""Rituals: the SOUL opens them on their days, and writes down the result of each run."""
