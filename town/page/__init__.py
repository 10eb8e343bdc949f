"""The web page on which people watch the town and take part in it."""
