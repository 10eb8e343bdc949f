"""`soul up`: several SOULs, each a process forked from one that has loaded the program, and a page for all."""
