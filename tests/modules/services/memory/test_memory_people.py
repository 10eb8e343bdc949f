"""A memory belongs to the accounts that it named when it was saved, whoever has their handles later."""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from common.person import Person
from modules.runtime.database.database import Database
from modules.runtime.database.people import know_person
from modules.services.inbox import messages, received
from modules.services.inbox.received import ReceivedPost
from modules.services.memory.admission import NewMemory
from modules.services.memory.people import copies_of
from modules.services.memory.rows import remember

SAM, MALLORY, TOBI = "did:plc:sam", "did:plc:mallory", "did:web:tobi.test"
NOW = datetime(2026, 3, 2, tzinfo=UTC)
NAMING = (
    NewMemory("person", "Sam, @sam.test", "Tobi finds him rude.", source="owner:terminal", trust="owner"),
    NewMemory("person", "SAM.test", "Likes slate."),
    NewMemory("fact", "roofs", 'He ("@sam.test") wrote of slate.'),
    NewMemory("fact", "a link", "See https://bsky.app/profile/sam.test/post/3k of March."),
    NewMemory("preference", "mutes", "Say nothing to @Sam.test."),
)
OTHERS = (
    NewMemory("fact", "sam.test", "Is a site, and sam.test/roofs a page of it."),
    NewMemory("fact", "mail", "To roofs@sam.test, @sam.test.example, @sam.tests, @sam.test_x or kit@@sam.test."),
    NewMemory("curated", "Friends", "- @sam.test"),
    NewMemory("person", "Sam", "Bears a name that anybody can choose."),
)


UNSPACED = ("@sam.testさんは石板が好きです", "彼は@sam.testです", "我们认识@sam.test。", "@sam.test은 지붕을 좋아한다")
BESIDE = (
    *("_@sam.test_ likes slate.", "@sam.test- he likes slate.", "@sam.test_", "「@sam.test」", "🙂@sam.test🙂"),
    *("“@sam.test” likes slate.", "@sam.test\u2019s roof leaks.", "Slate—@sam.test", "He (@sam.test…) likes slate."),
    "Write to\xa0@sam.test\xa0today.",
)
WRITTEN_ODDLY = tuple(NewMemory("fact", "oddly", body) for body in (*UNSPACED, *BESIDE))


def wrote(did: str, handle: str, at: str = "2026-03-01T00:00:00.000Z") -> ReceivedPost:
    uri = f"at://{did}/app.bsky.feed.post/{handle}"
    payload = {"author": {"did": did, "handle": handle, "display_name": "slate"}, "text": "Hello"}
    return ReceivedPost(uri, uri, did, payload, at, at, "handled")


async def save(database: Database, *memories: NewMemory) -> None:
    await database.run(lambda rows: [remember(rows, one, NOW) for one in memories])


async def meet(database: Database, *posts: ReceivedPost) -> None:
    await database.run(lambda rows: received.insert(rows, posts))


async def theirs(database: Database, did: str) -> list[str]:
    def ask(rows: sqlite3.Connection) -> Sequence[str]:
        know_person(rows, Person(did))
        return list(copies_of(rows, did))

    return sorted(await database.run(ask))


def copies(memories: Sequence[NewMemory]) -> list[str]:
    return sorted(f"{one.subject}\n{one.body}" for one in memories)


async def test_what_names_a_known_account_is_that_accounts_and_stays_so_when_the_handle_passes_on(
    database: Database,
) -> None:
    await meet(database, wrote(SAM, "sam.test"))
    await save(database, *NAMING, *OTHERS)
    assert await theirs(database, SAM) == copies(NAMING)
    await database.run(lambda rows: rows.execute("DELETE FROM pending_notifications"))
    await meet(database, wrote(MALLORY, "sam.test"))
    await save(database, *NAMING)
    assert await theirs(database, MALLORY) == []
    assert await theirs(database, SAM) == copies(NAMING)


async def test_a_handle_under_which_several_wrote_or_nobody_ties_nobody(database: Database) -> None:
    await meet(database, wrote(SAM, "sam.test"), wrote(MALLORY, "sam.test"), wrote(MALLORY, "roofs.md"))
    await save(database, *NAMING, NewMemory("fact", "roofs.md", "Slate is moving to roofs.md."))
    assert await theirs(database, SAM) == []
    assert await theirs(database, MALLORY) == []


async def test_what_names_several_is_each_ones(database: Database) -> None:
    def talk(rows: sqlite3.Connection) -> None:
        messages.keep_talk(rows, messages.Talk("c", TOBI, "accepted", "tobi.test"))

    await meet(database, wrote(SAM, "sam.test"))
    await database.run(talk)
    both = NewMemory("fact", "Friday", "@tobi.test and @sam.test come.")
    await save(database, both)
    assert await theirs(database, SAM) == await theirs(database, TOBI) == copies([both])


async def test_a_handle_ties_and_is_told_in_every_script_and_beside_any_mark(database: Database) -> None:
    await meet(database, wrote(SAM, "sam.test"))
    await save(database, *WRITTEN_ODDLY)
    assert await theirs(database, SAM) == copies(WRITTEN_ODDLY)
    assert [one.body for one in WRITTEN_ODDLY if not Person(SAM, ("sam.test",)).is_named_in(one.body)] == []


async def test_the_account_that_the_owner_s_line_names_is_not_also_that_of_who_bore_its_handle_before(
    database: Database,
) -> None:
    await meet(database, wrote(MALLORY, "sam.test"))
    await save(
        database,
        NewMemory(
            "person", "Sam, @sam.test", "My sister: no nuts.", trust="owner", about=(SAM,), resolved=("sam.test",)
        ),
    )
    assert await theirs(database, MALLORY) == []


async def test_a_memory_said_again_with_another_name_is_that_account_s_too(database: Database) -> None:
    await meet(database, wrote(SAM, "sam.test"), wrote(TOBI, "tobi.test"))
    await save(database, NewMemory("fact", "Friday", "They come with @sam.test."))
    again = NewMemory("fact", "Friday", "They come with @sam.test.", tags=("@tobi.test",))
    await save(database, again)
    assert await theirs(database, TOBI) == copies([again])
