"""The HTTP transport, through which every HTTP request of the program passes, and a client for the open web."""
