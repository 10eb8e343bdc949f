"""The life in the agent space: what is heard there, and when to speak."""
