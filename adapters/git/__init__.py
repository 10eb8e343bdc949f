"""Git repositories: clone, commit and push."""
