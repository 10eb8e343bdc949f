"""Plans of work in GitHub issues: their text, their tasks, and who holds which."""
