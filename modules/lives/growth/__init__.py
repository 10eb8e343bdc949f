"""How the SOUL grows: it reflects on what it lived through, and changes SELF.md by what lasts."""
