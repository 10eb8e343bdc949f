"""How a SOUL lives: rails that every life uses, and the lives themselves."""
