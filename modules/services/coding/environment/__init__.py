"""Installs the packages that a repository needs: read from its files, resolved by the real tools, checked by hash."""
