"""What the SOUL remembers: entries in a searchable store, profiles, and the files that are views of them."""
