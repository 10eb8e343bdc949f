"""The life in direct messages: with the owner, from the phone."""
