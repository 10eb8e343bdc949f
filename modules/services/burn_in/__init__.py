"""The first hours of a version in a home: what is counted, and when the version before is to come back."""
