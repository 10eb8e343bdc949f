"""A Kubernetes cluster, by its API."""
