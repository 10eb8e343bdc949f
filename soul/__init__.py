"""The program: commands, composition root, owner terminal."""
