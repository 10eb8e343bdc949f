"""What our own account chose on Bluesky not to read, and whom it chose not to meet."""
