"""The client of the watcher, which watches for SOULs that sleep."""
