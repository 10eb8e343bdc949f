"""A turn: one call of the model with its tools, until the matter is settled."""
