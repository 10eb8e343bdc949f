"""The threads on GitHub that something led us to, as rows of work."""
