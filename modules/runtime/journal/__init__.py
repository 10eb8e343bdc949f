"""Every decision, as it happens, with its reason."""
