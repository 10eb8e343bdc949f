"""Programs that the SOUL runs, without its secrets and its network, and the files that it may write."""
