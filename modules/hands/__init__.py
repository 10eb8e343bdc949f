"""The hands: programs that the SOUL runs, in a room of their own, and the files that it may write."""
