"""Reading repositories that nobody works on here."""
