"""The tools of a SOUL, which the model calls: one file per family of tools."""
