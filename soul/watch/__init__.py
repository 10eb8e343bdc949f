"""The watcher: checks whether anything came for SOULs that sleep, and wakes them."""
