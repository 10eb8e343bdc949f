"""Goes through the scenarios of a workspace after a plan."""
