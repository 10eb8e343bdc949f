"""What others may know of us: the statements on our own account, and whose new posts we are told of."""
