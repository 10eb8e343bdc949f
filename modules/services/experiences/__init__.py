"""The SOUL's experiences, which every life records and from which it may learn."""
