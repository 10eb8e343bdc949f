"""Sleep: when nothing is due, the process ends, and a watcher starts it again when something comes."""
