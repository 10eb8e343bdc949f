"""What people allow to be done with what they write."""
