"""What a SOUL can do when the model asks: one file per family of tools."""
