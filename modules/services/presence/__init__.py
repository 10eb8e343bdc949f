"""Our public presence: the statements on our own account, the lease of the home, and the follow of the owner."""
