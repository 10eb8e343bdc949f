"""The one door to the language model."""
