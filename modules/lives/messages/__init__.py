"""Direct messages: the conversation with the owner, on the phone for example, and answers to others."""
