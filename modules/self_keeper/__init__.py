"""The one door through which SELF.md changes."""
