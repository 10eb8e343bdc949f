"""What people allow the SOUL to do with what they write, and what they may ask for about their own data."""
