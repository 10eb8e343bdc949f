"""A table is read and written only in the package that owns it; the test checks all SQL of the product.

Lines of JSON are split by `common/json_lines.py`, as `str.splitlines` also splits inside strings. A constant in
common/constants.py has at least two packages that use it; a number with one user is defined beside it. A class name is
defined once in the product, so that it means the same everywhere.
"""

import ast
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import PurePosixPath

import pytest

from common import constants
from modules.runtime.database.schema import MIGRATIONS
from modules.services.rights.forgetting import STORES
from tests.project import PRODUCT, product_trees

pytestmark = pytest.mark.guard


SCHEMA = "modules/runtime/database/schema"
OWNERS = {
    "ai_preferences": "modules/services/rights",
    "archives": "modules/services/sessions",
    "budget_days": "modules/runtime/budget",
    "coding_steps": "modules/services/coding",
    "direct_conversations": "modules/services/inbox",
    "direct_messages": "modules/services/inbox",
    "experiences": "modules/services/experiences.py",
    "feed_keys": "modules/services/outbox",
    "forgotten_people": "modules/services/rights",
    "friction": "modules/services/craft",
    "intents": "modules/services/outbox",
    "interactions": "modules/services/relationships.py",
    "journal": "modules/runtime/journal",
    "marks": "modules/runtime/database",
    "memories": "modules/services/memory",
    "memories_fts": "modules/services/memory",
    "model_calls": "modules/runtime/budget",
    "muted_people": "modules/services/rights",
    "no_reply_people": "modules/services/rights",
    "other_writes": "modules/services/outbox",
    "pending_notifications": "modules/services/inbox",
    "people_met": "modules/services/relationships.py",
    "profiles": "modules/services/memory",
    "repository_verdicts": "modules/services/repository_rules",
    "proposals": "modules/services/craft",
    "ritual_runs": "modules/services/rituals",
    "seen_locks": "modules/services/claims",
    "session_messages": "modules/services/sessions",
    "sessions": "modules/services/sessions",
    "task_leases": "modules/services/claims",
    "work": "modules/services/work",
}

WITHOUT_PEOPLE = {
    *("budget_days", "coding_steps", "feed_keys", "forgotten_people", "memories_fts", "model_calls"),
    *("other_writes", "repository_verdicts", "seen_locks", "task_leases"),
}
"""Tables that hold counts, hashes, our own addresses, names of repositories and what was coded there, or an index."""

_NAMED = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+(?:OR\s+[A-Z]+\s+)?[\"`]?(\w+)")


def tables() -> set[str]:
    """Return the tables of the schema, without the internal tables of its word index."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in MIGRATIONS.values():
            connection.executescript(script)
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return {name for name in names if not name.startswith(("sqlite_", "memories_fts_"))}


def named_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each line on which a string names a table in SQL, with that table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, name) for name in _NAMED.findall(node.value))


def test_every_table_has_an_owner() -> None:
    assert tables() == set(OWNERS)


def test_every_table_says_what_it_holds_of_a_person_or_that_it_holds_nothing() -> None:
    answered = [table.name for store in STORES for table in store.tables]
    assert sorted([*answered, *WITHOUT_PEOPLE]) == sorted(tables())


@pytest.mark.parametrize("folder", PRODUCT)
def test_no_package_names_the_table_of_another(folder: str) -> None:
    strangers = [
        f"{path}:{line} names {table}, which belongs to {OWNERS[table]}"
        for path, tree in product_trees(folder).items()
        if not str(path).startswith(SCHEMA)
        for line, table in named_in(tree)
        if table in OWNERS and not PurePosixPath(path).is_relative_to(OWNERS[table])
    ]
    assert strangers == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("'SELECT 1 FROM intents'", ["intents"]),
        ("f'''UPDATE {x} SET a = 1 WHERE id IN (SELECT id\\n FROM journal)'''", ["journal"]),
        ("'INSERT OR IGNORE INTO marks VALUES (?)'", ["marks"]),
        ("'a JOIN sessions ON 1'", ["sessions"]),
        ("'Turns words into intents, from marks.'", []),
    ],
)
def test_a_table_is_found_in_any_string(source: str, found: list[str]) -> None:
    assert [table for _, table in named_in(ast.parse(source))] == found


_OTHER_LINES = {
    "modules/services/identity/history.py": "lines of SELF.md; its JSON is whole files",
    "modules/services/rights/scrub.py": "lines of logs",
    "town/mind/questions.py": "lines of pages; its JSON is answers of a model",
}


def _splits_json_lines(tree: ast.AST) -> bool:
    """Return whether a module that parses JSON, or names a file of JSON lines, uses `splitlines`."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return "splitlines" in attributes and ("loads" in attributes or any("jsonl" in text for text in strings))


def test_no_module_that_reads_json_splits_lines_as_prose_is_split() -> None:
    found = {path for path, tree in product_trees().items() if _splits_json_lines(tree)}
    assert found - set(_OTHER_LINES) == set()


def test_a_violation_is_found() -> None:
    assert _splits_json_lines(ast.parse("found = [json.loads(line) for line in text.splitlines()]"))
    assert _splits_json_lines(ast.parse("lines = (folder / 'log.jsonl').read_text().splitlines()"))
    assert not _splits_json_lines(ast.parse("lines = page.splitlines()"))


UNITS = {"SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS"}


def _imported(tree: ast.Module) -> set[str]:
    """Return the constants that a module uses, imported by name or through the module `common.constants`."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in froms if node.module == "common.constants" for alias in node.names}
    modules = {
        alias.asname or alias.name
        for node in froms
        if node.module == "common"
        for alias in node.names
        if alias.name == "constants"
    }
    return names | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }


def test_each_shared_constant_has_users_in_two_packages() -> None:
    users: dict[str, set[PurePosixPath]] = defaultdict(set)
    for path, tree in product_trees().items():
        for name in _imported(tree):
            users[name].add(PurePosixPath(path).parent)
    shared = {name for name in vars(constants) if name.isupper()} - UNITS
    assert {name: sorted(map(str, users[name])) for name in sorted(shared) if len(users[name]) < 2} == {}


def _defined_twice(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return each class name with more than one definition, and the modules that define it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_class_name_is_defined_twice() -> None:
    assert _defined_twice(product_trees()) == {}


def test_a_class_name_that_is_defined_twice_is_found() -> None:
    trees = {"a.py": ast.parse("class Plan: ..."), "b.py": ast.parse("class Task:\n    class Plan: ...")}
    assert _defined_twice(trees) == {"Plan": ["a.py", "b.py"]}
