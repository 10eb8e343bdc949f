"""What is to be done or said at set times: once or each week, in the SOUL's time zone."""
