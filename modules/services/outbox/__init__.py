"""The outbox: sends all public acts, each exactly once or not at all."""
