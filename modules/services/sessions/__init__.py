"""Conversations: stored before the model is asked, condensed when they grow, archived when they end."""
