"""The watcher: looks for those that sleep whether anything came, and calls who is to wake."""
