"""How a SOUL gets better at what it does: it counts what goes wrong again and again, and proposes how to mend it."""
