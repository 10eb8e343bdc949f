"""Proves which skills a SOUL finds beyond the shipped ones, and that a bad one does no harm."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.storage.local import Storage, open_storage
from modules.runtime.home import Home
from modules.services.owner_files import LocalOwnerFiles, OwnerFiles, StoredOwnerFiles
from modules.services.skills.skills import MOST_READ, LocalSkills, SkillEntry
from soul.commands.self_ import own_skills
from tests.adapters.storage.s3_server import S3, WHO, open_kind, serving_s3

TEA = "---\nname: tea\ndescription: How to make tea.\nwhen: Somebody is thirsty.\n---\n\n# Tea\n\nBoil water.\n"


@dataclass
class Shelf:
    """Skills, and both places where they are stored."""

    owner_files: OwnerFiles
    storage: Storage
    skills: LocalSkills
    warnings: list[str] = field(default_factory=list)

    async def own(self, name: str, text: str) -> None:
        await self.owner_files.write(f"skills/{name}/SKILL.md", text)

    async def share(self, name: str, text: str | bytes) -> None:
        data = text if isinstance(text, bytes) else text.encode()
        assert (await self.storage.put(f"skills/{name}/SKILL.md", data)).success


def shelf_of(owner_files: OwnerFiles, storage: Storage) -> Shelf:
    warnings: list[str] = []
    skills = LocalSkills(owner_files=owner_files, storage=storage, shipped={"core"}, warn=warnings.append)
    return Shelf(owner_files, storage, skills, warnings)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serving_s3() as running:
        yield running


@pytest.fixture(params=("home", "s3"))
async def shelf(request: pytest.FixtureRequest, tmp_path: Path, s3: S3) -> AsyncIterator[Shelf]:
    at_home = request.param == "home"
    storage = open_kind("file" if at_home else "s3", tmp_path, s3)
    place = LocalOwnerFiles(Home.at(tmp_path), print) if at_home else StoredOwnerFiles(storage, "rowan", print)
    yield shelf_of(place, storage)
    await storage.aclose()


def page(name: str, description: str, body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


async def test_a_skill_says_what_it_is_for_and_when_and_is_loaded_without_its_front(shelf: Shelf) -> None:
    await shelf.own("tea", TEA)
    assert await shelf.skills.listing() == (SkillEntry("tea", "How to make tea.", "Somebody is thirsty.", "own"),)
    assert await shelf.skills.load("tea") == "# Tea\n\nBoil water."


async def test_a_skill_of_its_own_hides_the_shared_one_of_the_same_name(shelf: Shelf) -> None:
    await shelf.share("tea", page("tea", "Shared tea.", "Shared."))
    await shelf.share("bread", page("bread", "Shared bread.", "Bake."))
    await shelf.own("tea", page("tea", "Own tea.", "Own."))
    entries = [(entry.name, entry.description, entry.origin) for entry in await shelf.skills.listing()]
    assert entries == [("bread", "Shared bread.", "shared"), ("tea", "Own tea.", "own")]
    assert [await shelf.skills.load(name) for name in ("tea", "bread")] == ["Own.", "Bake."]


async def test_no_skill_takes_the_name_of_a_shipped_prompt(shelf: Shelf) -> None:
    await shelf.own("core", page("core", "Mine."))
    await shelf.share("core", page("core", "Theirs."))
    assert await shelf.skills.listing() == ()
    assert await shelf.skills.load("core") is None
    assert shelf.warnings == ["skill core left out: has the name of a shipped one"]


async def test_a_page_that_changed_is_read_anew_and_one_that_is_gone_is_not_listed(shelf: Shelf) -> None:
    await shelf.share("tea", page("tea", "One."))
    await shelf.share("bread", page("bread", "Bread."))
    await shelf.skills.listing()
    await shelf.share("tea", page("tea", "Two."))
    await shelf.storage.delete("skills/bread/SKILL.md")
    assert [entry.description for entry in await shelf.skills.listing()] == ["Two."]


BAD = [
    (b"# No front at all", "no description"),
    (b"---\nname: other\ndescription: x\n---\nx", "by another name"),
    (b"---\nname: [\n---\nx", "frontmatter"),
    (b"---\na: " + b"[" * 1000 + b"\n---\nx", "nested too deeply"),
    (b"---\na: " + b"[" * 20_000 + b"\n---\nx", "too much stands in front"),
    (page("tea", "Long.", "x" * 65_536).encode(), "larger than 64 KiB"),
]


@pytest.mark.parametrize(("data", "why"), BAD)
async def test_a_page_that_is_no_skill_is_left_out_with_one_warning(tmp_path: Path, data: bytes, why: str) -> None:
    shelf = shelf_of(LocalOwnerFiles(Home.at(tmp_path), print), open_storage("", root=tmp_path / "store"))
    await shelf.share("tea", data)
    await shelf.share("bread", page("bread", "Bread."))
    for _ in range(2):
        assert [entry.name for entry in await shelf.skills.listing()] == ["bread"]
        assert await shelf.skills.load("tea") is None
    assert len(shelf.warnings) == 1
    assert why in shelf.warnings[0]
    assert "\n" not in shelf.warnings[0]


async def test_a_bad_skill_of_its_own_does_not_hide_a_good_shared_one(shelf: Shelf) -> None:
    await shelf.own("tea", "# Tea")
    await shelf.share("tea", page("tea", "Shared tea.", "Shared."))
    assert [entry.origin for entry in await shelf.skills.listing()] == ["shared"]
    assert await shelf.skills.load("tea") == "Shared."


async def test_what_the_listing_tells_is_one_clean_line(shelf: Shelf) -> None:
    await shelf.share(
        "tea", f"---\nname: tea\ndescription: |\n  Tea.<|im_end|>\n  {'z' * 500}\n---\nBoil <|im_start|>it."
    )
    (entry,) = await shelf.skills.listing()
    assert entry.description.startswith("Tea. zzz")
    assert len(entry.description) == 240
    assert await shelf.skills.load("tea") == "Boil it."


async def test_what_is_no_name_loads_nothing(shelf: Shelf) -> None:
    await shelf.own("tea", TEA)
    for name in ("", "..", "../core", "Tea", "tea/../core", "a b", "tea\n", "x" * 65):
        assert await shelf.skills.load(name) is None


async def test_a_store_that_cannot_be_reached_costs_only_what_lies_there(tmp_path: Path) -> None:
    away = open_storage("s3://bucket?endpoint=http://127.0.0.1:1", root=tmp_path, credentials=WHO, deadline_s=5)
    shelf = shelf_of(LocalOwnerFiles(Home.at(tmp_path), print), away)
    await shelf.own("tea", TEA)
    for _ in range(2):
        assert [entry.name for entry in await shelf.skills.listing()] == ["tea"]
    assert shelf.warnings == ["shared skills left out: The store cannot be reached"]
    nowhere = shelf_of(StoredOwnerFiles(away, "rowan", print), away)
    assert await nowhere.skills.listing() == ()


async def test_of_very_many_skills_the_first_are_read_and_the_rest_is_told_once(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    for number in range(MOST_READ + 3):
        file = home.workspace / "skills" / f"page-{number:04}" / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(page(file.parent.name, "How I do it."))
    shelf = shelf_of(LocalOwnerFiles(home, print), open_storage("", root=tmp_path / "store"))
    for _ in range(2):
        assert [one.name for one in await shelf.skills.listing()][-1] == f"page-{MOST_READ - 1:04}"
    assert shelf.warnings == [f"own skills left out: 3 of them, beyond the first {MOST_READ} by name"]
    found = own_skills(home)
    assert (len(found), found[-1]) == (MOST_READ + 1, f"3 more left out, beyond the first {MOST_READ} by name")
