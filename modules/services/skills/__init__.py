"""The texts for the model: the skills of the program and those that the owner adds."""
