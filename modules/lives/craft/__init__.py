"""Self-improvement: the SOUL counts frictions, and proposes how to mend them."""
