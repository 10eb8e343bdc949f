"""Builds the services of a SOUL that its lives share."""
