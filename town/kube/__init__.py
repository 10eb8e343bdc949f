"""A cluster with Sandboxes: its API over HTTP, and real processes for pods."""
