"""Self-improvement: the frictions and wishes of a SOUL, and the proposals that it makes from them."""
