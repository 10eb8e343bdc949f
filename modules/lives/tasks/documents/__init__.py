"""The first kind of task work: Markdown documents are written and offered as a pull request."""
