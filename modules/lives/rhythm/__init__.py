"""The SOUL's own time: turns for what was scheduled, and for HEARTBEAT.md."""
