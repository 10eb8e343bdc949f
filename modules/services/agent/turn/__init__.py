"""A turn: one call of the model with its tools, until the model has nothing more to do."""
