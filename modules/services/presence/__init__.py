"""What others may know of us: the statements on our own account, and subscriptions to others' new posts."""
