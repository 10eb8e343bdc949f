"""Why the SOUL did something, or did not."""
