"""Reviews of pull requests in workspaces: tests run in the sandbox, and code limits the verdict to what they allow."""
