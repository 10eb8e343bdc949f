"""How a SOUL keeps its own time: what it scheduled, and what HEARTBEAT.md says."""
