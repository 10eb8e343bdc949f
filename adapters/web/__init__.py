"""The way out: every HTTP request of the program travels by the transport of this adapter, or not at all."""
