"""How a SOUL lives: the lives, the services that they use, and the runtime that keeps one process going."""
