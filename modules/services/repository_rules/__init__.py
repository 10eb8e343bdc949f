"""Finds out from the files of somebody else's repository whether it accepts an AI agent."""
