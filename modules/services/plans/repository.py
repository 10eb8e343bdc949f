"""Reads what a repository has before a plan is made there: its files, another plan, and the standard pages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import iso, parse_iso_or_none
from common.result import ApiResult, Ok, answering
from common.text.markdown import without_html_comments
from common.text.untrusted import clean, one_line
from modules.services.coding.python_tests import is_for_unittest
from modules.services.coding.suite_files import PYTEST_FILE, suite_definitions
from modules.services.plans.events import Wish, plan_for
from modules.services.plans.types import AGENTS_PAGE, MOST_PLANS, PLAN_LABEL, SCENARIOS_PAGE, names_issue

_PAGES = (AGENTS_PAGE.lower(), "readme.md")

_MOST_PATHS, _PATH_CHARS, _PATHS_CHARS = 200, 160, 6_000
_PAGE_CHARS, _TITLE_CHARS, _MOST_ISSUES, _MOST_ENDINGS = 2_500, 120, 20, 8
_TELLS_TESTS = frozenset({"package.json", "Makefile", "pyproject.toml", "Cargo.toml", "go.mod"})
_PYTEST = "pytest"
_DEPENDENCIES = frozenset({"node_modules", "vendor", ".venv", "target", "dist"})


async def repository_view(github: GitHub, repo: Repo, *, with_issues: bool) -> str:
    """Return a description: files, page for agents, README, test commands and, with `with_issues`, open issues.

    Parts that cannot be read now are left out; "" if nothing can be read or the repository is empty.
    """
    if (known := (await github.get_repository(repo)).or_else(None)) is None:
        return ""
    listed = (await github.contents.tree(repo, known.default_branch)).or_else(None)
    paths = tuple(one.path for one in listed.entries if one.type != "submodule") if listed else ()
    parts = [_files(paths), await _tests(github, repo, paths)]
    for path in sorted(one for one in paths if one.lower() in _PAGES):
        text = await page_text(github, repo, path)
        parts.append(f"{path}:\n{text}" if text else "")
    if with_issues:
        opened = (await github.list_issues(repo, limit=_MOST_ISSUES, pulls=False)).or_else(None)
        parts.append("" if opened is None else _issues(opened))
    return "\n\n".join(filter(None, parts))


async def page_text(github: GitHub, repo: Repo, path: str) -> str:
    """Return the beginning of a page as people read it, "" if it does not exist or cannot be read now."""
    read = (await github.contents.read(repo, path, max_chars=_PAGE_CHARS)).or_else(None)
    return without_html_comments(clean(read.text)).strip() if read else ""


def _files(paths: Sequence[str]) -> str:
    """Return the paths, chosen from the root downwards, and the most frequent file extensions."""
    own = [path for path in paths if _DEPENDENCIES.isdisjoint(path.split("/")[:-1])]
    own.sort(key=lambda path: (path.count("/"), path))
    shown: list[str] = []
    room = _PATHS_CHARS
    for path in own[:_MOST_PATHS]:
        line = one_line(path, _PATH_CHARS)
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    if not shown:
        return ""
    left = len(own) - len(shown)
    endings = Counter(f".{name.rpartition('.')[2]}" for path in own if "." in (name := path.rpartition("/")[2])[1:])
    told = ", ".join(f"{one_line(ending, _PATH_CHARS)} {count}" for ending, count in endings.most_common(_MOST_ENDINGS))
    more = [f"… and {left} more"] if left else []
    counted = f"{len(own)} file{'' if len(own) == 1 else 's'} ({told or 'no endings'}):"
    return "\n".join([counted, *sorted(shown), *more])


async def _tests(github: GitHub, repo: Repo, paths: Sequence[str]) -> str:
    """Return the test commands of the repository, as far as the files in its root give them."""
    texts: dict[str, str] = {}
    for path in sorted(_TELLS_TESTS.intersection(paths)):
        if read := (await github.contents.read(repo, path)).or_else(None):
            texts[path] = read.text
    commands = [*suite_definitions([path.rpartition("/")[2] for path in paths], texts)]
    if _PYTEST in commands and not any(_PYTEST in text for text in texts.values()):
        first = min((one for one in paths if PYTEST_FILE.fullmatch(one.rpartition("/")[2])), key=len)
        if (read := (await github.contents.read(repo, first)).or_else(None)) and is_for_unittest(read.text):
            commands[commands.index(_PYTEST)] = "python -m unittest"
    return f"Test commands: {', '.join(commands) or 'none'}" if paths else ""


def _issues(opened: Sequence[Issue]) -> str:
    lines = [f"#{one.number} {one_line(one.title, _TITLE_CHARS)}" for one in opened]
    heading = f"Open issues, the newest {_MOST_ISSUES}:" if len(lines) == _MOST_ISSUES else "Open issues:"
    return "\n".join([heading, *lines]) if lines else ""


CLOSED_LATELY = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Pages:
    """Which of the standard pages a repository has in its root."""

    has_agents_md: bool = False
    has_scenarios_md: bool = False


@answering
async def standing_plan(github: GitHub, repo: Repo, now: datetime, wish: Wish | None = None) -> ApiResult[Issue | None]:
    """Return the plan that makes another one needless: the oldest open one, or else one closed within a week.

    With a `wish`, only a plan for that wish counts.
    """
    since = now - CLOSED_LATELY
    opened = (await github.list_issues(repo, labels=(PLAN_LABEL,), limit=MOST_PLANS)).or_raise()
    plans = sorted((one for one in opened if not one.is_pull_request), key=lambda one: one.number)
    if found := plan_for(wish, plans) if wish else next(iter(plans), None):
        return Ok(found)
    closed = (
        await github.list_issues(repo, state="closed", labels=(PLAN_LABEL,), since=iso(since), limit=MOST_PLANS)
    ).or_raise()
    lately = [one for one in closed if not one.is_pull_request and _closed_since(one, since)]
    newest = sorted(lately, key=lambda one: -one.number)
    return Ok(plan_for(wish, newest) if wish else next(iter(newest), None))


@answering
async def is_planned(github: GitHub, repo: Repo, number: int) -> ApiResult[bool]:
    """Return whether an open plan names an issue, which then stays open until the plan is complete."""
    opened = (await github.list_issues(repo, labels=(PLAN_LABEL,), limit=MOST_PLANS)).or_raise()
    return Ok(any(names_issue(one.body, number) for one in opened))


async def pages_of(github: GitHub, repo: Repo) -> Pages:
    """Return which pages are in the root; none if it cannot be read, as a task too many does no harm."""
    listed = await github.contents.list(repo)
    names = {entry.name.lower() for entry in listed.data} if isinstance(listed, Ok) else set()
    return Pages(AGENTS_PAGE.lower() in names, SCENARIOS_PAGE.lower() in names)


def _closed_since(issue: Issue, moment: datetime) -> bool:
    closed_at = parse_iso_or_none(issue.closed_at)
    return closed_at is not None and closed_at >= moment
