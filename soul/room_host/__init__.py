"""The program that hosts an agent space, and the terminal from which its host speaks."""
