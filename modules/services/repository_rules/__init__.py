"""Whether somebody else's repository accepts an AI agent, by its own files."""
