"""The life in workspaces: plans, issues and tasks there, and their progress."""
