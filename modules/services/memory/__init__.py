"""The SOUL's memory: entries in a searchable store, profiles, and the files that are views of them."""
