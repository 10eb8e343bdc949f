"""Which files wait for the owner wherever they are pushed."""

from __future__ import annotations

from modules.services.outbox.rules.policy import first_trusted

TRUSTED = """
.github/workflows/test.yml .GitHub/Workflows/Deep/x.yml .github/actions/a/action.yml .github/dependabot.yml
.gitlab-ci.yml .circleci/config.yml azure-pipelines.yml Jenkinsfile .travis.yml .drone.yml bitbucket-pipelines.yml
.buildkite/pipeline.yml web/package-lock.json Cargo.lock requirements-dev.lock uv.lock go.sum .npmrc web/.npmrc
.yarnrc.yml .yarn/releases/yarn.cjs pip.conf .pypirc .cargo/config.toml .gitattributes docs/.gitattributes .gitmodules
.pre-commit-config.yaml .husky/pre-push .devcontainer/devcontainer.json .vscode/tasks.json
CODEOWNERS docs/CODEOWNERS .github/CODEOWNERS AGENTS.md src/agents.md CLAUDE.md CLAUDE.local.md .cursorrules
.cursor/rules/a.mdc .github/copilot-instructions.md .claude/settings.json .mcp.json
"""
OTHERS = """
package.json pyproject.toml requirements.txt Cargo.toml go.mod setup.py Makefile README.md src/lock.py yarn.lock.md
.github/ISSUE_TEMPLATE.md docs/.github/workflows/a.yml docs/agents.md.txt myagents.md notcodeowners a.npmrc
tests/travis.yml .gitignore .vscodeignore vscode/tasks.json src/claude/x.py
"""


def test_what_runs_in_ci_or_at_install_or_instructs_agents_is_found_whatever_its_case() -> None:
    assert [path for path in TRUSTED.split() if not first_trusted(["a.py", path])] == []
    assert [path for path in OTHERS.split() if first_trusted([path])] == []
