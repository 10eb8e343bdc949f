"""Writes a home into one file while the SOUL runs, sealed with a passphrase, and restores it elsewhere."""
