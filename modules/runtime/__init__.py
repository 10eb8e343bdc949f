"""The infrastructure that one process of a SOUL runs on."""
