"""The town's model service: the chat-completions protocol over HTTP, answered by a scripted mind or by a gateway."""
