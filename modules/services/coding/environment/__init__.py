"""The packages that a repository needs: read from its files, resolved by the real tools, installed by hash."""
