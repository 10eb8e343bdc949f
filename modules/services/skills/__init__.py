"""The words for a model: the skills of the program and those that the owner adds."""
