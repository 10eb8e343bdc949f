"""What keeps one process going."""
