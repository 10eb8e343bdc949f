"""A picture gallery on loopback: channels and pictures, told as the interface of Are.na (v2) tells them, and pages."""
