"""What carries intents out, one sender for each service."""
