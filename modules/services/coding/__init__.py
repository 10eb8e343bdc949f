"""Code for one task: written by the model with a few tools in a sandbox, within limits, and judged before it leaves."""
