"""The lives of a SOUL, one package each; no life imports another."""
