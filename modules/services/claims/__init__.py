"""Claims the tasks of plans: the protocol of a claim, its leases, and the sweep of claims that ended."""
