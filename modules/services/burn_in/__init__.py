"""The first hours of a version in a home: what is counted, and when the earlier version is to come back."""
