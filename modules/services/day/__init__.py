"""One day of a SOUL on one screen: gathered from the database and rendered for its owner."""
