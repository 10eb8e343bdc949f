"""What is to be done or said at set times: once, each day or each week, in the SOUL's time zone."""
