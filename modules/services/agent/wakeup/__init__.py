"""The wakeup context: what a SOUL is told about its past when it starts."""
