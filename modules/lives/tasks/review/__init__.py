"""Reviews of pull requests in workspaces: their tests are run in the sandbox, and code holds what they allow."""
