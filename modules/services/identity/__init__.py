"""The SOUL's identity: its account, SELF.md, and the only code that changes SELF.md."""
