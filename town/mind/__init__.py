"""The model service of the town: the chat-completions protocol, and a small scripted mind behind it."""
