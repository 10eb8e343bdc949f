"""Work that is to be done once: one durable table, and one loop that hands each row to its handler."""
