"""Who the SOUL is: its account, SELF.md, and the one way in which SELF.md changes."""
