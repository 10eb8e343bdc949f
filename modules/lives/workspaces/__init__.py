"""The life in workspaces: what is planned there, and how far it is."""
