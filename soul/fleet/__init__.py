"""Many SOULs on a Kubernetes cluster: FLEET.yaml, its manifests, and the roll-out of new images."""
