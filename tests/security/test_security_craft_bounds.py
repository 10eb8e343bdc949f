"""Attacks on the bounds of a change to the SOUL's own program: names, shadows, links, modes, renames, sizes."""

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.git.worktree import BranchChanges, Worktree
from modules.services.coding.gates import Closed, GateFacts, closed_gate
from modules.services.craft.bounds import MOST_PROGRAM_LINES, closed_to_program, out_of_bounds
from modules.services.outbox.github_bodies import PushBody
from tests.adapters.results import ok
from tests.modules.lives.craft.test_own_program import changing
from tests.modules.services.coding.coding_rig import git
from tests.project import ROOT
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub

JUDGES = (
    *("Makefile", "makefile", "GNUmakefile", "BSDmakefile", "rules.mk", "pytest.ini", ".pytest.ini", "tox.ini"),
    *("setup.cfg", "setup.py", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", ".importlinter", ".coveragerc"),
    *("pyproject.toml", "uv.toml", "uv.lock", "requirements.lock", "requirements/more.txt", "conftest.py"),
    *("tests/conftest.py", "tests/lives/conftest.py", "tests/pytest.ini", "tests/tox.ini", "tests/setup.cfg"),
    *("tests/pyproject.toml", "modules/ruff.toml", "modules/lives/.ruff.toml", "common/clock.pyi", ".ci/check"),
    *(".ci/size", ".github/workflows/ci.yml", ".GitHub/Workflows/ci.yml", ".gitlab-ci.yml", "docs/.github/x.yml"),
    *(".gitattributes", "modules/.gitattributes", ".gitmodules", ".gitignore", "tests/.gitignore", ".mailmap"),
    *("tests/security/test_security_sandbox.py", "tests/guards/test_one_owner.py", "tests/security/new.py"),
    *("Containerfile", "compose.yaml", ".dockerignore", ".pre-commit-config.yaml", ".env", "SOUL.md", "LICENSE"),
)
"""Files that judge a change, that set up what judges it, or that say how the program is run."""
SHADOWS = (
    *("sitecustomize.py", "usercustomize.py", "pytest.py", "pytest/__init__.py", "ruff/__main__.py", "mypy.py"),
    *("coverage.py", "asyncio.py", "sqlite3/__init__.py", "bwrap", "bin/make", "src/modules/x.py"),
    *("common/settings/__init__.py", "common/provenance/__init__.py", "common/redact/__init__.py"),
    *("modules/services/workspaces/trust/__init__.py", "modules/lives/growth/policy/__init__.py"),
    *("modules/runtime/control/__init__.py", "modules/services/craft/bounds/__init__.py"),
    *("common/text/untrusted/deep/down.py", "local_tools/self_tools/__init__.py", "common/provenance.pyi"),
)
"""New files that Python, make or a tool would find before one of the program."""
LIMITS = (
    *("modules/services/outbox/rules/new.py", "modules/runtime/budget/policy.py", "modules/runtime/sandbox/runner.py"),
    *("modules/services/agent/turn/runner.py", "modules/services/agent/tools/policy.py", "adapters/git/worktree.py"),
    *("adapters/web/policy.py", "modules/services/identity/policy.py", "modules/services/presence/disclosure.py"),
    *("local_tools/self_tools.py", "modules/lives/growth/policy.py", "soul/commands/backup.py"),
    *("COMMON/Provenance.py", "Tests/Security/x.py", "modules/services/CRAFT/friction.py", "Modules/lives/Tasks/x.py"),
)
"""Files that limit the SOUL's acts, also spelled as a file system that ignores case accepts them."""
ODD = (
    *("te\u017fts/\u017fecurity/x.py", "tests/\uff53ecurity/x.py", "tests/security\u200b/x.py"),
    *("common/proven\u0430nce.py", "docs/boo\u212a.md", "docs/caf\u00e9.md", "docs/cafe\u0301.md"),
    *("docs/\u202egnp.md", "common/\ufeffclock.py", "docs/a\x7f.md", "docs/a\udce9.md", "docs/x.md\n"),
    *('"common/clock.py"', "docs/a\nb.md", "docs/a\tb.md", "docs/a b.md", "docs\\..\\Makefile", "docs/a:b.md"),
    *("docs/*.md", "docs/[a].md", "'docs/x.md", "docs/$(x).md"),
)
"""Names that stand for another file on another machine, or look like another name to a reader."""
FREE = (
    *("README.md", "CHANGELOG.md", "docs/behaviour.md", "modules/lives/bluesky/perceive.py", "local_tools/reading.py"),
    *("modules/services/memory/recall.py", "skills/expression/SKILL.md", "town/github/pulls.py", "common/clock.py"),
    *("soul/dashboard/templates/now.html", "skills/contracts.json", "modules/services/claims/claimer.py"),
    *("tests/modules/services/memory/test_recall.py", "modules/runtime/llm/gateway.py", "bench/mention_turn.py"),
)


@pytest.mark.parametrize("path", [*JUDGES, *SHADOWS, *LIMITS, *ODD])
def test_only_people_change_what_judges_limits_or_stands_for_it(path: str) -> None:
    assert out_of_bounds(["README.md", path]) == [path]


def test_what_the_program_does_may_change() -> None:
    assert [one for one in FREE if not (ROOT / one).exists() and "test_recall" not in one] == []
    assert out_of_bounds(FREE) == []


@needs_git
async def test_no_push_with_such_a_file_leaves_whoever_asks_for_it(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        at = {"repo": "acme/PROGRAM", "source": "workspace", "sha": "0" * 40, "folder": "x", "branch": "task-1-x"}
        said = {
            path: await place.advised(PushBody(**at, paths=("common/posting.py", path)))
            for path in (*JUDGES[::6], *SHADOWS[::4], *LIMITS[::4], *(one for one in ODD[::3] if one.isprintable()))
        }
        assert {path: code for path, code in said.items() if code != "refused"} == {}


HELD = {
    "Makefile": "check:\n\ttrue\n",
    "common/provenance.py": "OWNER, STRANGER = 2, 0\n" * 40,
    "common/clock.py": "NOW = 1\n" * 40,
    "tests/security/test_x.py": "def test_x() -> None:\n    assert 1\n",
    "docs/page.md": "A page.\n",
    ".ci/check": "true\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    """Return the tree of a task, in which the files of `HELD` are committed."""
    work = Worktree(tmp_path / "repository", tmp_path / "tree")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(tmp_path / "clone")], check=True)
    work.take(tmp_path / "clone")
    for path, text in HELD.items():
        (work.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (work.tree / path).write_text(text)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message=Begin")
    return work


async def refused(work: Worktree) -> Closed | None:
    """Commit what is in the tree as a task does, and return the gate that is shut, if any."""
    base = git(work, "rev-parse", "HEAD")
    ok(await work.commit("task(1): Mend it", name="rowan", email="r@example.org", at=datetime.now(UTC)))
    changes: BranchChanges = ok(await work.changes(base))
    facts = GateFacts(changes.branch, changes, (), lambda _: False)
    return closed_to_program(changes) or closed_gate(facts)


def _move(root: Path) -> None:
    (root / "common/provenance.py").rename(root / "common/origin.py")


def _move_onto(root: Path) -> None:
    (root / "common/clock.py").rename(root / "common/provenance.py")


def _move_folder(root: Path) -> None:
    (root / "tests/security").rename(root / "tests/attacks")


def _swap_case(root: Path) -> None:
    (root / "common/provenance.py").rename(root / "common/Provenance.py")


def _link_folder(root: Path) -> None:
    (root / "tests/security/test_x.py").unlink()
    (root / "tests/security").rmdir()
    (root / "tests/security").symlink_to("../docs")


def _link_to_bound(root: Path) -> None:
    (root / "docs/page.md").unlink()
    (root / "docs/page.md").symlink_to("../Makefile")


def _link_outside(root: Path) -> None:
    (root / "docs/passwd.md").symlink_to("/etc/passwd")


def _mode(root: Path) -> None:
    (root / ".ci/check").chmod(0o755)


def _submodule(root: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(root / "modules/inner")], check=True)
    (root / ".gitmodules").write_text('[submodule "inner"]\n\tpath = modules/inner\n\turl = https://evil.example/x\n')


def _binary(root: Path) -> None:
    (root / "common/clock.so").write_bytes(b"\x7fELF\0\0" * 50)


def _binary_by_attribute(root: Path) -> None:
    (root / "docs/.gitattributes").write_text("* binary\n")
    (root / "docs/page.md").write_text("Not shown.\n")


def _thirteen_files(root: Path) -> None:
    for number in range(13):
        (root / f"docs/page{number}.md").write_text("x\n")


def _too_many_lines(root: Path) -> None:
    (root / "docs/page.md").write_text("x\n" * MOST_PROGRAM_LINES)


def _deleted_lines_count(root: Path) -> None:
    (root / "common/clock.py").unlink()
    (root / "docs/page.md").write_text("x\n" * (MOST_PROGRAM_LINES - 39))


def _lines_without_line_ends(root: Path) -> None:
    (root / "docs/page.md").write_bytes(b"\r".join([b"and one more line of it"] * 9_000))


def _one_long_line(root: Path) -> None:
    (root / "docs/data.json").write_text(f'{{"x": "{"ab " * 90_000}"}}')


def _hidden_signs(root: Path) -> None:
    (root / "common/clock.py").write_text("NOW = 1  # \u202e\u2066 if owner\n")


def _file_for_folder(root: Path) -> None:
    (root / "tests/security/test_x.py").unlink()
    (root / "tests/security").rmdir()
    (root / "tests/security").write_text("")


ATTACKS: tuple[Callable[[Path], None], ...] = (
    *(_move, _move_onto, _move_folder, _swap_case, _link_folder, _link_to_bound, _link_outside, _mode, _submodule),
    *(_binary, _binary_by_attribute, _thirteen_files, _too_many_lines, _deleted_lines_count),
    *(_lines_without_line_ends, _one_long_line, _hidden_signs, _file_for_folder),
)


@needs_git
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: str(one.__name__))
async def test_what_a_change_hides_from_its_paths_or_its_size_is_refused(
    tree: Worktree, attack: Callable[[Path], None]
) -> None:
    attack(tree.tree)
    assert await refused(tree) is not None


@needs_git
async def test_a_small_change_is_offered(tree: Worktree) -> None:
    (tree.tree / "docs/page.md").write_text("A page, and a word more.\n")
    (tree.tree / "common/clock.py").write_text("NOW = 2\n" * 40)
    assert await refused(tree) is None
