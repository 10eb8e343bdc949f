"""The commands, one module per command; `soul/command_line.py` says how they are called."""
