"""The only place that states the version; the build and every state file read it here."""

__version__ = "0.3.0.dev0"
