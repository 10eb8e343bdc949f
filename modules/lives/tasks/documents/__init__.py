"""The first kind of task work: a task that asks for Markdown documents is written, and offered as a pull request."""
