"""What the SOUL and a person said to each other before, for prompts and for the owner."""
