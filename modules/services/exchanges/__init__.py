"""Earlier exchanges between the SOUL and a person, for prompts and for the owner."""
