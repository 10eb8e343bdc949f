"""The second kind of task work: a task that asks for code is coded in a sandbox, and offered as a pull request."""
