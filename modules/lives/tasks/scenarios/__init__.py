"""Tries the scenarios of a workspace after a plan is completed."""
