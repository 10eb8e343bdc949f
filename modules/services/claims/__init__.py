"""Who gets a task of a plan: the protocol of a claim, its leases, and the sweep of those that ended."""
