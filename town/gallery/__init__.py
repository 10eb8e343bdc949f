"""A picture gallery on loopback: channels and pictures through the API of Are.na (v2), and pages."""
