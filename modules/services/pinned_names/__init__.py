"""The ids of names when they were first seen. A name that later belongs to another id waits for the owner."""
