"""The words of the SOUL for operational texts that the public reads: from `voice-phrases.json`, or a skill."""
