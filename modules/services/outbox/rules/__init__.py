"""What is asked once, when an act is proposed: whether it may be admitted."""
