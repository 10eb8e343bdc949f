"""The language model: one gateway for every call."""
