"""What each command does, one module per command; `soul/command_line.py` says how it is called."""
