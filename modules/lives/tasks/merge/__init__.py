"""What becomes of our own pull requests for tasks: merged, brought up to date, or taken back."""
