"""The life in the agent space: reads what is said there, and decides when to speak."""
