"""What the lives use to think and to act."""
