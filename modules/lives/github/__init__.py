"""GitHub: threads of issues and pull requests in which the SOUL is addressed."""
