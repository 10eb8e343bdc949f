"""A cluster with Sandboxes: its API over HTTP, with real processes as pods."""
