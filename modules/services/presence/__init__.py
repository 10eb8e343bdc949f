"""Our public presence: the statements on our own account, the lease of the home, and subscriptions to new posts."""
