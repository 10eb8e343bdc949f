"""How a SOUL gets better at what it does: what goes wrong again and again, what it wishes, and what it proposes."""
