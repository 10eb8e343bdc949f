"""Proves that the pages for people match the program: commands, options, files, settings, and what a page names."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer

from common.settings import Settings
from modules.runtime.home import Home
from soul.command_line import app
from soul.command_table import rows_at
from tests.project import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
MOST_README_LINES = 110

# NOTE(self): read by tests, other programs or the shell; they are not settings of a home.
ELSEWHERE = {
    "CRASH_KILLS",
    "CRASH_MOVES",
    "NO_COLOR",
    "XDG_STATE_HOME",
    "BUDGET_DAYS",
    "STATE_FILES",
    "TOWN_RACES",
    "POLL_HOURS",
}


def _rows(page: str, heading: str = "\n") -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8").partition(heading)[2]
    return [line for line in text.splitlines() if line.startswith("| `")]


def _commands(command: Any, path: tuple[str, ...] = ("soul",)) -> dict[str, Any]:
    """Return the commands by their full names; a group is replaced by the commands in it."""
    inside = getattr(command, "commands", None)
    if inside is None:
        return {" ".join(path): command}
    inner = (_commands(one, (*path, name)) for name, one in inside.items())
    return {name: one for found in inner for name, one in found.items()}


COMMANDS = _commands(typer.main.get_command(app))


def _usage(name: str) -> str:
    """Return the usage of a command as the page shows it."""
    usages = [row.split("`")[1] for row in _rows("cli.md") if row.startswith(f"| `{name}")]
    return next(usage for usage in usages if usage == name or usage.startswith(f"{name} "))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_shows_each_command_with_all_its_options_and_no_other(name: str) -> None:
    context = typer.Context(COMMANDS[name])
    parameters = COMMANDS[name].get_params(context)
    options = {option for one in parameters for option in one.opts if one.param_type_name == "option"}
    assert set(re.findall(r"--[a-z-]+", _usage(name))) == {one for one in options if one.startswith("--")} - {
        "--home",
        "--help",
    }
    takes_words = any(one.param_type_name == "argument" for one in parameters)
    rest = re.sub(r"\[--[^\]]*\]", "", _usage(name).removeprefix(name))
    assert bool(re.search(r"[A-Z]{2,}", rest)) is takes_words
    assert not re.search(r"\binf\b|\d\.0(?![.\d])", COMMANDS[name].get_help(context)), "a whole number is shown as one"


def test_the_page_shows_no_command_that_is_not_there() -> None:
    shown = [row.split("`")[1] for row in _rows("cli.md") if row.startswith("| `soul ")]
    assert [usage for usage in shown if not any(f"{usage} ".startswith(f"{name} ") for name in COMMANDS)] == []


def test_the_page_shows_what_can_be_typed_while_it_runs() -> None:
    usages = {row.usage for row in rows_at("terminal").values()}
    assert len(usages) > 5
    shown = {row.split("`")[1].removeprefix("/") for row in _rows("cli.md", "## While it runs")}
    assert shown == usages


def test_every_file_of_a_home_stands_on_the_page() -> None:
    patterns = [row.split("`")[1] for row in _rows("files.md")]
    home = Home(ROOT, ROOT / ".memory")
    paths = [getattr(home, name) for name, value in vars(Home).items() if isinstance(value, property)]
    names = [str(path.relative_to(ROOT)) for path in paths]
    assert len(names) > 9
    assert [
        name for name in names if not any(fnmatch(name, one) or one.startswith(f"{name}/") for one in patterns)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_whatever_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"`(?:[A-Z_]+=\S+ )*make ([a-z-]+)", text), *re.findall(r"\nmake ([a-z-]+)", text)}
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    paths = re.findall(r"`(?:python )?((?:bench|tests|modules|soul|common|adapters|docs)/[\w./-]*)", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert [one for one in tests if f"def {one[1]}(" not in (ROOT / one[0]).read_text(encoding="utf-8")] == []
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    """Links to code files are left out: they name constants there, which `tests/guards` looks for."""
    known = {name.upper() for name in Settings.model_fields} | ELSEWHERE
    text = re.sub(r"\[[^\]]*\]\([^)]*\.py\)", "", page.read_text(encoding="utf-8"))
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)\b", text))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert {name for name in named if name not in known and f"{name}=" not in example} == set()


def test_the_first_page_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_README_LINES
    assert max(map(len, lines)) <= 140
