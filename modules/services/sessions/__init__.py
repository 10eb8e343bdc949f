"""Conversations as they were had: kept before the model is asked, condensed when they grow, archived when they end."""
