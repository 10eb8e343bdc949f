"""The second kind of task work: code is written in a sandbox and offered as a pull request."""
