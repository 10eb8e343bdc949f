"""What is asked each time before an intent leaves."""
