"""Whether a repository of somebody else wants an AI agent there, by what its own files say."""
