"""The watcher of SOULs that sleep, as a SOUL speaks to it."""
