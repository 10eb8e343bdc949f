"""How a SOUL lives, one package for each world; no life imports another."""
