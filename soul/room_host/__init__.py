"""The program that hosts an agent space, and the terminal of its host."""
