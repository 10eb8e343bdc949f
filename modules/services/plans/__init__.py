"""Plans of work in GitHub issues: their text and their tasks."""
