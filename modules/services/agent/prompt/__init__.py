"""The system prompt: files by priority, within a budget of tokens, in an order that caches well."""
