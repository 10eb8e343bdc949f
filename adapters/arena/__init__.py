"""Are.na: channels of pictures that people collect, read without an account."""
