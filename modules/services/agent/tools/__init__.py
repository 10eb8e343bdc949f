"""The tools of the model: their types, the registry and the executor."""
