"""The agent: its turns with the model, the tools, the prompt and the wakeup context."""
