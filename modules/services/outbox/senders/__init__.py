"""The senders of intents, by service."""
