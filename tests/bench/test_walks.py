"""The measure of how straight the way of data is follows a value as a careful reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.calls import Source
from bench.walks import ROOT, WALKS, Walk, follow

FILES = {
    "common/strings.py": "def short(text: str) -> str:\n    return text\n",
    "modules/values.py": """
class Case:
    item: str
""",
    "modules/store.py": """
class Store:
    def keep(self, row):
        return None

    def find(self, key):
        return key

class Archive:
    def put(self, row): ...

class Shelf:
    def put(self, row): ...
""",
    "modules/reader.py": """
from modules.values import Case

def read(item):
    return Case(item)
""",
    "modules/loop.py": """
from common.strings import short
from modules.reader import read
from modules.store import Archive, Store

class Loop:
    def __init__(self, store: Store, archive: Archive) -> None:
        self._store = store
        self._archive = archive

    def run(self, item, other):
        case, rest = read(item), read(other)
        self._answer(case)

    def _answer(self, case):
        if case:
            self._store.keep(row=case.item)
        for part in case.parts:
            self._part(part)

    def _part(self, part):
        self._archive.put(part)
        return self._store.find(short(part))

    def rest(self, other):
        kept = self._store.keep(other)
        self._part(kept)
""",
}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    for path, text in FILES.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Source(tmp_path)


def _functions(walk: Walk) -> list[str]:
    return [step.function for step in walk.steps]


def test_a_value_is_followed_into_what_is_built_of_it_and_what_is_unpacked_from_it(source: Source) -> None:
    walk = follow(source, "modules/loop.py:Loop.run:item")
    assert _functions(walk) == ["Loop.run", "read", "Loop._answer", "Store.keep", "Loop._part"]


def test_stays_are_the_files_entered_and_the_returns_to_one_left_before(source: Source) -> None:
    walk = follow(source, "modules/loop.py:Loop.run:item")
    assert walk.stays == [
        "modules/loop.py",
        "modules/reader.py",
        "modules/loop.py",
        "modules/store.py",
        "modules/loop.py",
    ]
    assert walk.returns == 2


def test_what_a_function_does_not_give_back_is_not_followed(source: Source) -> None:
    assert _functions(follow(source, "modules/loop.py:Loop.rest:other")) == ["Loop.rest", "Store.keep"]


def test_only_the_names_of_the_value_are_followed(source: Source) -> None:
    assert _functions(follow(source, "modules/loop.py:Loop.run:other")) == ["Loop.run", "read"]


def test_a_method_of_several_classes_and_a_helper_of_common_are_not_entered(source: Source) -> None:
    assert _functions(follow(source, "modules/loop.py:Loop._part:part")) == ["Loop._part"]


def test_a_start_that_is_not_there_is_refused(source: Source) -> None:
    with pytest.raises(SystemExit, match="no such function or parameter"):
        follow(source, "modules/loop.py:Loop.run:nothing")


def test_no_walk_of_the_program_is_above_its_limit() -> None:
    source = Source(ROOT)
    walks = {limit: follow(source, limit.start) for limit in WALKS}
    assert not [limit.what for limit, walk in walks.items() if len(walk.stays) > limit.stays]
    assert not [limit.what for limit, walk in walks.items() if walk.returns > limit.returns]


def test_the_page_on_the_design_tells_the_limits() -> None:
    section = (ROOT / "docs/design.md").read_text(encoding="utf-8").partition("## The way of data")[2]
    rows = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("| ")]
    assert {(row[1], row[-2]) for row in rows[1:]} == {(one.what, f"{one.stays} / {one.returns}") for one in WALKS}
