"""Growth: the SOUL reflects on its experiences, changes SELF.md by what lasts, and reads about its questions."""
