"""Which parts of our files belong to a person, by the account in them, and what is left of a file without them.

Which of a person's records applies to us, and what it allows. What is answered about somebody's data if the model's
words do not match the facts, over real HTTP. Forgetting somebody ends a life, so it is put off until several people can
be forgotten together, and nobody can end many lives.
"""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from adapters.atproto.types import Record
from common.clock import FakeClock
from common.person import SOMEBODY_DID, Person, Trace
from common.provenance import Provenance
from common.redact import Redactor
from common.text.graphemes import grapheme_len
from common.text.rights_requests import RequestKind
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ToolCall
from modules.runtime.logs import LoggedConsole, logging_to
from modules.services.agent.one_sentence import SentenceAsker
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.outbox.people import ACTS_OF_PEOPLE, ActEnd, ActKind
from modules.services.rights.answering import MOST, SKILL, Reading, RequestReader, RightsVoice
from modules.services.rights.forgetting import STORES
from modules.services.rights.policy import (
    INTENTS,
    PREFERENCE,
    Choice,
    Preference,
    may_reply,
    may_stand_in_prompt,
    preference_of,
)
from modules.services.rights.records import is_known, without
from modules.services.rights.requests import FORGET_AFTER, FORGET_EVERY, ForgetRequest, ForgetRequests, forget_at
from modules.services.sessions.store import kept_lines
from modules.services.work.types import Disposition
from soul.composition.wiring.turns import log_call
from tests.modules.runtime.llm.scripted_model import ScriptedModel, calls, says, scripted_gateway
from tests.modules.services.agent.prompt.prompt_home import PromptHome
from tests.shipped_skills import SHIPPED

QUILLON = "did:plc:quillon"
PERSON = Person(QUILLON, ("quillon.test",), ("Curiosity", "relationships"))
TRACE = Trace(PERSON, copies={"weir\nIt hums.": True, "Ann\nSo\nit is.": True, "roof\nOf @quillon.test.": False})


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "workspace/PROSOCHE.md",
            "What struck you:\n- Met @quillon.test for the first time\n- Met @ann.test for the first time\n",
            "What struck you:\n- Met @ann.test for the first time\n",
        ),
        (
            ".memory/logs/a.log",
            "one\nto @quillon.test\n did:plc:quillon\nthe curiosity of my.quillon.test, did:plc:quillonia\n",
            "one\nthe curiosity of my.quillon.test, did:plc:quillonia\n",
        ),
        (
            ".memory/logs/a.log",
            "Paused by the owner: The seventh weir hums at night.\nQueued, did%3aplc%3aquillon: Rain\n",
            "Paused by the owner: The seventh weir hums at night.\n",
        ),
        (
            "workspace/memory/2026-01-05.md",
            (
                "# 5\n\n- 10:00 fact, weir: It hums.\n- 10:01 fact, roof: It hums. @quillon.test\n"
                "- 10:02 fact, roof: Of @quillon.test.\n"
                "- 10:02 fact, in the words of a stranger:\n  > Ann\n  > So\n  > it is.\n- 10:03 fact, b: c\n"
            ),
            (
                "# 5\n\n- 10:01 fact, roof: It hums. @quillon.test\n"
                "- 10:02 fact, roof: Of @forgotten.invalid.\n- 10:03 fact, b: c\n"
            ),
        ),
        (
            ".memory/pending_commitments.jsonl",
            '{"sourceThreadUri": "at://did:plc:quillon/x/1"}\n{"description": "ask @quillon.test"}\n',
            '{"description": "ask @quillon.test"}\n',
        ),
        (
            ".memory/pending_commitments.jsonl",
            (
                '{"sourceThreadUri": "at://did:plc:quillon/x/1", "id": "to'
                '\n{"sourceThreadUri": "at://did:plc:quillon/x/1"}\n{"id": "torn\n'
                '{"id": "c", "sourceThreadUri": "at://did:plc:quillon/x/2", "params": {"hostRequest": true}}\n'
            ),
            '{"id": "torn\n{"id": "c", "params": {"hostRequest": true}}\n',
        ),
    ],
)
def test_lines_and_entries_that_are_a_persons_go(path: str, before: str, after: str) -> None:
    assert is_known(path)
    assert without(path, before, TRACE) == after


async def test_a_line_of_the_log_tells_by_ids_of_whom_it_is(tmp_path: Path, database: Database) -> None:
    clock, redactor, intent, message = FakeClock(), Redactor(), "0" * 8, "message:talk/1"
    with logging_to(tmp_path / "logs", clock=clock, redactor=redactor):
        journal = Journal(database, LoggedConsole(SilentConsole()), clock, redactor)
        await journal.record(Entry("act", "outbox", "Sent reply: Tin.", intent_id=intent))
        await journal.record(Entry("decision", "messages", "Answered: Tin.", trigger_uri=message))
        await journal.record(Entry("life", "peers", "Linked @somebody: Tin.", dids=(QUILLON, "did:plc:sam")))
        await journal.record(Entry("act", "outbox", "Sent post: Tin.", intent_id="1" * 8))
        log_call(
            ToolCall("1", "bluesky_reply", {"text": "Tin."}),
            ToolResult("{}", outcome=Disposition("posted", intent_id=intent)),
            Turn("awareness", Provenance.STRANGER),
        )
    (path,) = (tmp_path / "logs").iterdir()
    trace = Trace(PERSON, intents=frozenset({intent}), posts=frozenset({message}))
    left = [json.loads(line) for line in without(f".memory/logs/{path.name}", path.read_text(), trace).splitlines()]
    assert [line["event"] for line in left if "Tin." in json.dumps(line)] == ["Sent post: Tin."]


def test_records_are_a_persons_by_their_account_and_by_no_name() -> None:
    state = {
        "seenAt": "quillon.test",
        "relationships": {
            "did:plc:sam": {"did": "did:plc:sam", "displayName": "Curiosity of @quillon.test"},
            QUILLON: {"did": QUILLON},
        },
        "reflection": {"pendingInsights": [{"about": "@quillon.test", "did": QUILLON}, {"about": "@sam.test"}]},
        "workspaces": {"a/b": {"discoveredInThread": "at://did:plc:quillon/x/1", "discoveredAt": "2026"}},
    }
    after = json.loads(without(".memory/relationships.json", json.dumps(state), TRACE))
    assert after == {
        "seenAt": "quillon.test",
        "relationships": {"did:plc:sam": {"did": "did:plc:sam", "displayName": "Curiosity of @quillon.test"}},
        "reflection": {"pendingInsights": [{"about": "@sam.test"}]},
        "workspaces": {"a/b": {"discoveredAt": "2026"}},
    }


def test_what_others_call_themselves_or_say_takes_none_of_their_entries_along() -> None:
    sam = {"did": "did:plc:sam", "handle": "sam.test", "displayName": QUILLON, "interactions": [{"uri": "at://x/1"}]}
    peers = {
        "sam": {"blueskyDid": "did:plc:sam", "contestedBy": [QUILLON], "note": f"{QUILLON}: -"},
        "gone": {"blueskyDid": QUILLON},
    }
    before = json.dumps({"relationships": {"did:plc:sam": sam, QUILLON: {"did": QUILLON}}, "peers": peers})
    after = without(".memory/relationships.json", before, TRACE)
    assert QUILLON not in after
    told = json.loads(after)
    assert set(told["relationships"]) == {"did:plc:sam"}
    assert told["relationships"]["did:plc:sam"] == sam | {"displayName": SOMEBODY_DID}
    assert set(told["peers"]) == {"sam"}
    assert told["peers"]["sam"]["contestedBy"] == []


def test_half_a_surrogate_pair_in_a_record_stays_as_it_is() -> None:
    before = json.dumps({"relationships": {QUILLON: {"did": QUILLON}}, "rest": "\ud800"})
    after = without(".memory/relationships.json", before, TRACE)
    assert json.loads(after.encode(errors="surrogateescape")) == {"relationships": {}, "rest": "\ud800"}


@pytest.mark.parametrize(
    "path", [".memory/PAUSE", ".memory/soul.db.corrupt-1", "SELF.md", "workspace/MEMORY.md", "x.md"]
)
def test_no_other_file_is_looked_into(path: str) -> None:
    assert not is_known(path)


def test_of_an_archive_the_lines_of_others_stay() -> None:
    lines = [
        {"role": "user", "content": "@quillon.test: Rain?", "timestamp": 1, "dids": QUILLON},
        {"role": "user", "content": "@sam.test: What says @quillon.test?", "timestamp": 2, "dids": "did:plc:sam"},
        {"role": "assistant", "content": [{"type": "image", "r2Key": "media/1"}], "timestamp": 3, "dids": QUILLON},
    ]
    marked = "".join(f"{json.dumps(line)}\n" for line in lines)
    assert kept_lines(marked, Trace(PERSON)) == (f"{json.dumps(lines[1])}\n", ["media/1"])


def test_a_line_that_cannot_be_read_takes_no_line_of_others_along() -> None:
    torn, other = f'{{"content": "{QUILLON} to', '{"body": "Rain, it says'
    said = json.dumps({"role": "user", "content": "@sam.test: Rain?", "dids": "did:plc:sam"})
    kept, _ = kept_lines(f"{torn}\n{said}\n{other}\n", Trace(PERSON))
    assert kept == f"{said}\n{other}\n"


KIT, US = "did:plc:kit", ("did:plc:rowan", "rowan.test")
GLOBAL = {"$type": f"{PREFERENCE}#globalScope"}
POSTS = {"$type": f"{PREFERENCE}#collectionScope", "collection": "app.bsky.feed.post"}


def record(key: str = "self", /, collection: str = PREFERENCE, **value: Any) -> Record:
    return Record(f"at://{KIT}/{collection}/{key}", "bafy", value)


def naming(entity: str) -> dict[str, str]:
    return {"$type": f"{PREFERENCE}#entityScope", "entity": entity}


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (False, "deny"),
        (True, "allow"),
        ({"allow": False}, "deny"),
        ({"allow": True}, "allow"),
        ({"allow": "no"}, "unset"),
    ],
)
def test_a_choice_is_a_truth_value_or_an_object_that_holds_one(value: object, choice: Choice) -> None:
    assert preference_of([record(inference=value)], [], US).inference == choice
    assert preference_of([record(preferences={"inference": value})], [], US).inference == choice


def test_all_four_fields_are_read_and_what_is_not_set_stays_unset() -> None:
    told = record(training=False, inference=True, syntheticContent=False)
    assert preference_of([told], [], US) == Preference("deny", "allow", "deny", "unset")
    assert preference_of([], [], US) == Preference()


def test_what_names_us_goes_before_what_is_about_posts_and_that_before_everything() -> None:
    about_all = record(inference=True, scope=GLOBAL)
    about_posts = record("3k1", inference=False, embedding=False, scope=POSTS)
    about_us = record("3k2", inference=True, scope=naming("Rowan.test"))
    assert preference_of([about_all, about_posts], [], US).inference == "deny"
    assert preference_of([about_all, about_posts, about_us], [], US) == Preference(inference="allow", embedding="deny")


def test_what_names_somebody_else_or_another_collection_is_not_for_us() -> None:
    likes = {"collection": "app.bsky.feed.like"}
    others = [record("3k1", inference=False, scope=naming("did:plc:wren")), record("3k2", inference=False, scope=likes)]
    assert preference_of(others, [], US) == Preference()


@pytest.mark.parametrize("scope", [None, "region", 7, {"$type": f"{PREFERENCE}#regionScope", "region": "eu"}])
def test_of_a_record_whose_reach_is_not_understood_only_what_it_denies_counts(scope: object) -> None:
    odd = record("3k1", inference=False, embedding=True, scope=scope)
    assert preference_of([odd], [], US) == Preference(inference="deny")


def test_of_two_records_with_the_same_reach_the_newest_counts() -> None:
    newer, older = record("3k2", inference=True, scope=POSTS), record("3k1", inference=False, scope=POSTS)
    assert preference_of([newer, older], [], US).inference == "allow"


def test_the_older_declaration_fills_in_what_no_other_record_sets() -> None:
    older = record(collection=INTENTS, syntheticContentGeneration={"allow": False})
    assert preference_of([], [older], US) == Preference(synthetic_content="deny")
    assert preference_of([record(syntheticContent=True)], [older], US).synthetic_content == "allow"


@pytest.mark.parametrize(
    ("preference", "in_prompt"),
    [(Preference(), True), (Preference(inference="allow"), True), (Preference(inference="deny"), False), (None, False)],
)
def test_a_post_stands_in_a_prompt_unless_its_author_denies_it_or_nobody_knows(
    preference: Preference | None, *, in_prompt: bool
) -> None:
    assert may_stand_in_prompt(preference) is in_prompt


@pytest.mark.parametrize(("choice", "unasked"), [("unset", True), ("allow", True), ("deny", False)])
def test_who_denies_synthetic_content_gets_a_reply_only_where_they_asked(choice: Choice, *, unasked: bool) -> None:
    preference = Preference(synthetic_content=choice)
    assert may_reply(preference, asked=True)
    assert may_reply(preference, asked=False) is unasked


COUNTS = {"received posts": 31, "sent": 17, "conversations": 12, "memories": 8, "rights": 1, "journal": 64, "files": 3}
FACTS = [SHIPPED.render(SKILL, "Facts", name, acts="replies", count=count).strip() for name, count in COUNTS.items()]


def test_there_is_a_fact_for_each_store_that_holds_something_of_people() -> None:
    stores = {one.store for one in STORES if any(list(table.queries) for table in one.tables)}
    told = SHIPPED.subsections(SKILL, "Facts").keys()
    assert stores - {ACTS_OF_PEOPLE.store} <= told
    assert SHIPPED.subsections(SKILL, "Acts").keys() == set(get_args(ActKind))
    assert told >= set(get_args(ActEnd))


MADE_UP = "I hold 4711 posts of yours, and nothing else."


@pytest.fixture
async def voice(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[RightsVoice]:
    clock = FakeClock()
    gateway = scripted_gateway(
        model.url,
        clock=clock,
        max_retries=0,
    )
    asker = SentenceAsker(lambda: "rowan.test", gateway, PromptHome(tmp_path / "home").prompter, SHIPPED, clock)
    yield RightsVoice(lambda: "mailto:keeper@example.org", asker, SHIPPED)
    await gateway.aclose()


@pytest.mark.parametrize(("known", "most"), [(3, MOST), (7, MOST), (7, 150)])
async def test_numbers_that_no_fact_tells_give_way_to_those_that_fit_and_to_whom_to_ask(
    voice: RightsVoice, model: ScriptedModel, known: int, most: int
) -> None:
    model.plays(*[calls(("answer_request", json.dumps({"sentence": MADE_UP})))] * 2)
    said, why = await voice.say({"know": FACTS[:known]}, "en", "stranger", most=most)
    told = [fact for fact in FACTS[:known] if fact in said]
    assert "twice" in why
    assert [MADE_UP in json.dumps(one) for one in model.requests] == [False, True], "it is told what was wrong"
    assert grapheme_len(said) <= most
    assert said.endswith("ask mailto:keeper@example.org.")
    assert told
    assert told == FACTS[: len(told)]
    assert re.findall(r"\d+", said) == [re.findall(r"\d+", fact)[0] for fact in told]
    assert ("and more." in said) == (len(told) < known)
    assert len(told) == known or grapheme_len(said) + grapheme_len(FACTS[len(told)]) > most - 3


@pytest.mark.parametrize("argument", ["sentence", "text"])
@pytest.mark.parametrize(
    ("kind", "right"),
    [
        ("forget", "I delete all that I hold of you here within the hour."),
        ("know", "Einunddreißig Beiträge, 17 Antworten; 12 Notizen. Mehr weiß mailto:keeper@example.org."),
    ],
)
async def test_a_right_sentence_is_said_as_it_is(
    voice: RightsVoice, model: ScriptedModel, kind: RequestKind, right: str, argument: str
) -> None:
    model.plays(calls(("answer_request", json.dumps({argument: right}))))
    assert await voice.say({kind: FACTS}, "en", "stranger") == (right, "")


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        ("know", MADE_UP, "I hold 31 posts."),
        ("forget", "I forget you within 2 hours.", "I forget you within the hour."),
        ("why", "I answered post 5.", "You mentioned me."),
        ("no_reply", "I stay silent for 30 days.", "I stay silent."),
    ],
)
async def test_the_second_answer_counts_where_the_first_was_wrong(
    voice: RightsVoice, model: ScriptedModel, kind: RequestKind, wrong: str, right: str
) -> None:
    model.plays(*(calls(("answer_request", json.dumps({"sentence": one}))) for one in (wrong, right)))
    assert await voice.say({kind: FACTS}, "en", "stranger") == (right, "")


async def test_the_end_of_five_long_messages_is_read(voice: RightsVoice, model: ScriptedModel) -> None:
    model.plays(says('{"kinds": ["forget"], "language": "en"}'))
    said = "\n".join([*["moss and slate " * 66] * 5, "And now forget me."])
    reading = await RequestReader(voice.sentences.gateway, SHIPPED).read(said, "stranger")
    assert reading == Reading(("forget",))
    assert "And now forget me." in json.dumps(model.requests)


async def test_where_two_answers_become_one_reply_both_prompts_say_so(voice: RightsVoice, model: ScriptedModel) -> None:
    joined = SHIPPED.section(SKILL, "Joined").strip()
    model.plays(*[calls(("answer_request", json.dumps({"sentence": "I did as you asked."})))] * 3)
    await voice.say({"forget": ["they asked for it"]}, "en", "stranger")
    await voice.say({"no_reply": ["they asked for it"], "forget": ["they asked for it"]}, "en", "stranger")
    assert [joined in json.dumps(one) for one in model.requests] == [False, True, True]


NOW = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


def test_who_asks_is_forgotten_soon_and_together_with_others() -> None:
    due = forget_at(FakeClock(NOW))
    assert timedelta() < due - NOW - FORGET_AFTER <= FORGET_EVERY
    assert due == forget_at(FakeClock(NOW + timedelta(minutes=8)))
    assert due < forget_at(FakeClock(NOW), is_answered=False) < NOW + timedelta(hours=1)


def test_who_asks_again_and_again_is_forgotten_once_a_day() -> None:
    ended: list[datetime] = []
    due: datetime | None = None
    for minute in range(0, 48 * 60, 10):
        now = NOW + timedelta(minutes=minute)
        if due is not None and due <= now:
            ended.append(due)
            due = None
        next_due = forget_at(FakeClock(now), ended[-1] if ended else None)
        due = next_due if due is None else min(due, next_due)
    assert len(ended) == 2


@pytest.mark.parametrize("torn", [b'{"did": "did:pl', b"[]", b'{"did": "", "not_before": "soon"}', b"\xff"])
def test_a_request_that_cannot_be_read_is_put_aside_and_stops_no_other(tmp_path: Path, torn: bytes) -> None:
    requests, whole = ForgetRequests(tmp_path), ForgetRequest("did:plc:ada", NOW)
    requests.give(whole)
    (tmp_path / "forget" / "0123.json").write_bytes(torn)
    assert requests.all() == requests.due(NOW) == [whole]
    (told,) = requests.set_unreadable_aside()
    assert "0123.json" in told
    (aside,) = (tmp_path / "forget").glob("0123.json.*")
    assert aside.read_bytes() == torn
    assert requests.set_unreadable_aside() == []
    requests.done(whole)
    assert requests.all() == []
    assert aside.exists()
