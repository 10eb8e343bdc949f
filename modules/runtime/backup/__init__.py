"""A home as one file: written while the SOUL runs, sealed with a passphrase, and brought back elsewhere."""
