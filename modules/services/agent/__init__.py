"""What makes one agent: its turns with the model, tools, prompt, memory, conversations and identity."""
