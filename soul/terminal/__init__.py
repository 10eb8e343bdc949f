"""The owner's terminal."""
