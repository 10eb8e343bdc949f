"""A SOUL's life on GitHub: threads of issues and pull requests in which it is spoken to."""
