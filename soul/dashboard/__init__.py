"""The owner's page: shows one home and acts on it; served on loopback, whether the SOUL is awake or not."""
