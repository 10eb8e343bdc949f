"""Writes the code for one task: a model uses a few tools in a sandbox, within limits, and gates check the result."""
