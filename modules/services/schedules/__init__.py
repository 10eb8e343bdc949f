"""What the SOUL does or says at set times: once, each day or each week, in its time zone."""
