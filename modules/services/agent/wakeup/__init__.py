"""What a SOUL is told of its life so far when it starts."""
