"""The rules that decide whether a proposed act is admitted."""
