"""What a name stood for when it was first seen. A name that answers for somebody else later waits for the owner."""
