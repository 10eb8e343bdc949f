"""How long a test waits before it calls something hung: no verdict on speed, so it bears a very busy machine."""

HANG_S = 120.0
