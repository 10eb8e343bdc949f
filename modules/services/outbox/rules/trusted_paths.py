"""Which files act with more rights than other code: they run in CI or at install, or instruct agents. Pure.

A manifest such as `package.json` is not among them: a task may ask for a dependency. The lock beside it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

_AT_ROOT = (
    *(".github/workflows/*", ".github/actions/*", ".github/dependabot.y*ml", ".github/renovate.json*"),
    *(".github/copilot-instructions.md", ".github/instructions/*", ".github/prompts/*", ".github/agents/*"),
    *(".circleci/*", ".buildkite/*", ".woodpecker/*", ".teamcity/*", ".semaphore/*", ".gitea/*", ".forgejo/*"),
    *("azure-pipelines*.y*ml", "bitbucket-pipelines.yml", "buildspec*.y*ml", "cloudbuild*.y*ml", "appveyor.yml"),
)
_ANYWHERE = (
    # other CI
    *(".gitlab-ci*.y*ml", "jenkinsfile*", ".travis.yml", ".drone.y*ml", ".woodpecker.y*ml", ".appveyor.yml"),
    # which code of others is installed
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock"),
    *("poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock", "pylock*.toml", "requirements*.lock", "conda-lock.y*ml"),
    *("cargo.lock", "go.sum", "gemfile.lock", "composer.lock", "flake.lock", "mix.lock", "pubspec.lock"),
    *("podfile.lock", "package.resolved", "packages.lock.json", "gradle.lockfile"),
    # where it is installed from, and what runs then
    *(".npmrc", ".yarnrc*", ".pnpmfile.*js", "bunfig.toml", "pip.conf", "pip.ini", ".pypirc", "uv.toml", ".condarc"),
    *(".gemrc", "nuget.config", ".cargo/config", ".cargo/config.toml", ".yarn/*", "renovate.json*", ".renovaterc*"),
    # what runs, or is fetched, by `git` or an editor
    *(".gitattributes", ".gitmodules", ".pre-commit-config.y*ml", ".husky/*", "lefthook.y*ml", ".lefthook.y*ml"),
    *(".envrc", ".devcontainer/*", ".devcontainer.json", ".vscode/*"),
    # who must agree, and what agents are told
    *("codeowners", "agents.md", "claude*.md", "gemini.md", ".cursorrules", ".cursor/*", ".windsurfrules"),
    *(".windsurf/*", ".clinerules", ".clinerules/*", ".claude/*", ".gemini/*", ".codex/*", ".mcp.json"),
)


def first_trusted(paths: Iterable[str]) -> str:
    """Return the first path of a file that acts with more rights than other code, or ""."""
    return next((path for path in paths if _is_trusted(path.lower())), "")


def _is_trusted(path: str) -> bool:
    below = f"/{path}"
    return any(fnmatchcase(path, one) for one in _AT_ROOT) or any(fnmatchcase(below, f"*/{one}") for one in _ANYWHERE)
