"""The owner's page: a look into one home and a hand on it, served on loopback beside the SOUL or without it."""
