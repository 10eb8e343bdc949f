"""Schedules of the SOUL: things to do or say at set times, once, each day or each week, in its time zone."""
