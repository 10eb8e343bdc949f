"""What the SOUL lived through and may learn from, as every life writes it down."""
