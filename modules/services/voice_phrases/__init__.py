"""The SOUL's texts for operational messages in public: from `voice-phrases.json`, or from a skill."""
