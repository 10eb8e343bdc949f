"""Many SOULs on a Kubernetes cluster: what FLEET.yaml says, as manifests."""
