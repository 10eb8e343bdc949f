"""Proves that after a forget no byte of the home tells of a person whom it met."""

import asyncio
import gzip
import json
import signal
import sqlite3
import sys
import tracemalloc
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.storage.objects import workspace_key
from common.clock import SystemClock
from common.errors import SettingsError, UsageError
from common.facts import PostFacts
from common.files import write_atomic
from common.person import SOMEBODY_DID
from modules.runtime.backup import write_backup
from modules.runtime.home import Home
from modules.services.memory.admission import NewMemory
from modules.services.rights.requests import ForgetRequest, ForgetRequests
from soul.commands.people import carry_out_requests, forget_who_is_due, run_forget, run_know, run_mute
from tests.owner_lines import answered
from tests.patience import HANG_S
from tests.program import started, until
from tests.project import ROOT
from tests.running_town import PASSWORD, RunningTown, awake, call, replying, settings_of
from town.model.types import ChatRequest, Completion

WORDS = "Quagmire lanterns hum beside the seventh weir"


def places_that_hold(root: Path, *needles: str) -> list[str]:
    """Return the files below `root` that hold a needle in any case, packed or not, each with the needle."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
            lower = (str(path.relative_to(root)).encode() + b"\n" + content).lower()
            found += [f"{path.relative_to(root)}: {needle}" for needle in needles if needle.lower().encode() in lower]
    return found


async def live_with(town: RunningTown, home: Home, did: str) -> None:
    """Let the SOUL meet the account in every way that brings its words into a home."""
    other = town.account("sam")

    def answer(request: ChatRequest) -> Completion:
        about = request.facts.about
        is_theirs = isinstance(about, PostFacts) and about.author == "quillon.test"
        said = (
            f"You say that {WORDS}. Which is the loudest?"
            if is_theirs
            else "Slate keeps it out. What is yours made of?"
        )
        return replying(said)(request)

    town.mind.answer = answer
    async with awake(home) as life:
        services = life.app.services
        town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
        top, _ = town.network.post_as(other, "@rowan.test which roof keeps the rain out?")
        town.network.post_as(did, f"They do: {WORDS}", reply_to_uri=top)
        await life.look()
        town.network.post_as(other, "@rowan.test and what says @quillon.test of it?", reply_to_uri=top)
        await life.look()
        for subject in ("quillon.test", "weir"):
            told = NewMemory("person", subject, f"says that {WORDS}", source=f"bluesky:thread:{top}", dids=(did,))
            await services.knowledge.stores.memories.save(told, services.clock.now())
        kept = NewMemory("fact", "slate", "Slate is louder than tin.")
        await services.knowledge.stores.memories.save(kept, services.clock.now())
        await life.app.owner.receive("What do you think of @quillon.test?")
        await services.knowledge.refresh()
        for loop in ("heartbeat", "sessions"):
            await life.app.scheduler.run_guarded(loop)
        life.passes(26 * 3600)
        for loop in ("heartbeat", "sessions", "heartbeat"):
            await life.app.scheduler.run_guarded(loop)
        await life.app.status.write("stopped")
    (home.memory / "soul.db.corrupt-1").write_bytes(b"\x00SQLite @quillon.test\xff")


@pytest.mark.slow
@pytest.mark.parametrize("workspace", ["home", "store"])
async def test_after_a_forget_no_byte_of_the_home_tells_of_the_person(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str], workspace: str
) -> None:
    home, did = running_town.make_home("rowan", SOUL_WORKSPACE=workspace), running_town.account("quillon")
    await live_with(running_town, home, did)
    write_atomic(home.store / workspace_key("rowan", "GOALS.md"), "Learn about roofs.\nThank @quillon.test.\n")
    needles = (did, WORDS)
    before = places_that_hold(home.root, *needles)
    assert len(before) > 10
    assert any("/copies/soul-" in place for place in before)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "INSERT INTO journal (at, kind, loop, summary, reason, data, dids)"
            " VALUES ('2026-01-05', 'life', 'awareness', '2 to look at: @quillon.test, @sam.test', '', '{}', '')"
        )
    await asyncio.to_thread(run_know, home.root, "@quillon.test", as_json=True)
    known = json.loads(capsys.readouterr().out)
    assert known["person"]["did"] == did
    counts = {held["store"]: held["count"] for held in known["held"]}
    assert all(counts[store] for store in ("received posts", "acts", "conversations", "memories", "journal", "files"))
    await asyncio.to_thread(run_forget, home.root, "@quillon.test", as_json=False, yes=True)
    assert places_that_hold(home.root, *needles) == []
    told = capsys.readouterr().out
    assert "Still named in soul.db: message 1 of yours, which is yours to change" in told
    assert "Still named in soul.db: 1 entry of the journal, which is yours to change" in told
    assert "Still named in .memory/soul.db.corrupt-1 (an earlier database), which is yours to change" in told
    assert "Still named in GOALS.md (line 2; in the store), which is yours to change" in told
    assert "quillon" not in told
    async with awake(home) as life:
        listed = await life.app.services.knowledge.stores.memories.listed()
        assert "Slate is louder than tin." in [memory.body for memory in listed]
        await life.look()
    assert places_that_hold(home.root, *needles) == []


@pytest.mark.slow
@pytest.mark.smoke
async def test_a_soul_that_runs_starts_anew_and_has_forgotten(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    async with awake(home) as life:
        running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
        await life.look()
    write_atomic(home.workspace / "USER.md", "I live by the weir.\nMy oldest friend is @quillon.test.\n")
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "Awake")
        await asyncio.to_thread(run_forget, home.root, did, as_json=True, yes=True)
        assert json.loads(capsys.readouterr().out)["done"] is False
        await until(process, "still named in workspace/USER.md (line 2); only you change that")
        await until(process, "Awake")
        assert ForgetRequests(home.memory).all() == []
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), HANG_S)
    assert process.returncode == 0
    assert places_that_hold(home.root, did, "quillon", WORDS) == ["workspace/USER.md: quillon"]


@pytest.mark.slow
async def test_a_kill_in_between_costs_nothing(running_town: RunningTown) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    await live_with(running_town, home, did)
    ForgetRequests(home.memory).give(ForgetRequest(did, SystemClock().now()))
    killed = 0
    for number in (1, 4, 8, 12, 16):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.crash.forget_child", str(home.root), str(number), cwd=ROOT
        )
        killed += await child.wait() == -signal.SIGKILL
        if not ForgetRequests(home.memory).all():
            break
    assert killed > 1
    await asyncio.to_thread(carry_out_requests, settings_of(home), home)
    assert ForgetRequests(home.memory).all() == []
    assert places_that_hold(home.root, did, WORDS) == []


@pytest.mark.parametrize("who", ["did:plc:ada", "did:plc:bob"], ids=["theirs", "of another"])
async def test_a_row_that_cannot_be_read_keeps_nobody_from_being_forgotten(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str], who: str
) -> None:
    home, ada = running_town.make_home("rowan"), "did:plc:ada"
    async with awake(home):
        pass
    torn = f'{{"text":"{ada} torn'
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "INSERT INTO pending_notifications (uri, root_uri, author_did, payload, received_at, indexed_at, state)"
            " VALUES ('at://x/1', 'at://x/1', ?, ?, '2026-01-05', '2026-01-05', 'pending')",
            (who, torn),
        )
        connection.execute(
            "INSERT INTO intents (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at, state)"
            " VALUES ('1', 'post', '', ?, '', ?, '1', '2026-01-05', '2026-01-06', 'held')",
            (torn, f"once:peer-announcement:{ada}"),
        )
        connection.execute(
            "INSERT INTO journal (at, kind, loop, summary, reason, data, dids)"
            " VALUES ('2026-01-05', 'act', 'outbox', 'Said', '', ?, '')",
            (torn,),
        )
    await asyncio.to_thread(run_forget, home.root, ada, as_json=False, yes=True)
    assert "Forgotten" in capsys.readouterr().out
    assert places_that_hold(home.root, ada) == []
    with closing(sqlite3.connect(home.database)) as connection:
        stay = connection.execute("SELECT payload FROM pending_notifications").fetchall()
        assert stay == ([] if who == ada else [(torn.replace(ada, SOMEBODY_DID),)])
        assert connection.execute("SELECT count(*) FROM intents").fetchone() == (1,)


async def test_one_that_cannot_be_forgotten_keeps_no_other_and_no_start(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, dids = running_town.make_home("rowan"), ("did:plc:ada", "did:plc:bob")
    settings, requests = settings_of(home), ForgetRequests(home.memory)
    async with awake(home):
        pass
    with closing(sqlite3.connect(home.database)) as connection, connection:
        for did in dids:
            connection.execute("INSERT INTO muted_people (did, since) VALUES (?, '2026-01-05')", (did,))
            requests.give(ForgetRequest(did, SystemClock().now()))
        first = requests.all()[0].did
        connection.execute(
            "CREATE TRIGGER refuses BEFORE DELETE ON muted_people"
            f" WHEN old.did = '{first}' BEGIN SELECT RAISE(ABORT, '{first} is kept'); END"
        )
    (home.memory / "forget" / "0123.json").write_text('{"did": "did:pl')
    await asyncio.to_thread(forget_who_is_due, settings, home)
    assert [one.did for one in requests.all()] == [first]
    unread, told = capsys.readouterr().out.splitlines()
    assert "0123.json" in unread
    assert "IntegrityError" in told
    assert first not in told
    with closing(sqlite3.connect(home.database)) as connection, connection:
        assert connection.execute("SELECT did FROM muted_people").fetchall() == [(first,)]
        connection.execute("DROP TRIGGER refuses")
    await asyncio.to_thread(forget_who_is_due, settings, home)
    assert requests.all() == []


@pytest.mark.slow
async def test_somebody_forgotten_who_asks_again_is_answered_and_forgotten_again(running_town: RunningTown) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    needles = (did, "quillon", WORDS)
    running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as life:
        await life.look()
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    async with awake(home) as life:
        await life.look()
        assert len(running_town.texts("rowan")) == 1
        running_town.network.post_as(did, f"@rowan.test once more: {WORDS}. Which is cheaper?")
        running_town.mind.answer = replying("Tin is cheaper, and it sings when it rains. Do you like that?")
        await life.look()
        assert await life.app.services.relationships.get(did) is None
    assert len(running_town.texts("rowan")) == 2
    settings = settings_of(home)
    (request,) = ForgetRequests(home.memory).all()
    assert not await asyncio.to_thread(carry_out_requests, settings, home)
    ForgetRequests(home.memory).give(replace(request, not_before=request.not_before - timedelta(hours=25)))
    assert await asyncio.to_thread(carry_out_requests, settings, home)
    assert places_that_hold(home.root, *needles) == []


async def test_earlier_databases_and_large_files_are_not_read_and_the_owner_is_told_of_them(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as life:
        await life.look()
    home.self_md.write_text(f"{home.self_md.read_text()}\n- @quillon.test asks about roofs\n")
    large = [home.memory / name for name in ("copies/soul-2026-01-01.db", "soul.db.corrupt-1", "logs/notes.txt")]
    for path in large:
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(64 * 1024**2)
    tracemalloc.start()
    try:
        await asyncio.to_thread(run_know, home.root, did, as_json=True)
        known = json.loads(capsys.readouterr().out)
        await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [one["words"] for one in known["held"] if one["store"] == "files" and "SELF.md" in one["words"]]
    told = capsys.readouterr().out
    assert "Still named in .memory/soul.db.corrupt-1 (an earlier database)" in told
    assert "Still named in .memory/logs/notes.txt (not searched, as it is larger than 16 MiB)" in told
    assert not large[0].exists()
    assert most < 32 * 1024**2, f"{most} bytes"


async def test_the_owner_is_told_of_copies_of_the_home_which_cannot_be_changed(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as life:
        await life.look()
    copy = home.root / "before-0.2.0.soul"
    write_backup(home, copy)
    whole = copy.read_bytes()
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    assert f"in {copy.name} (a copy of the home)" in capsys.readouterr().out
    assert copy.read_bytes() == whole


async def test_a_mute_outlives_the_forgetting(running_town: RunningTown) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    async with awake(home):
        await asyncio.to_thread(run_mute, home.root, did, off=False, as_json=False)
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    assert places_that_hold(home.root, did, "quillon") == []
    async with awake(home) as life:
        running_town.network.post_as(did, "@rowan.test which roof is louder?")
        await life.look()
        await asyncio.to_thread(run_mute, home.root, did, off=True, as_json=False)
        running_town.network.post_as(did, "@rowan.test and which one is cheaper?")
        life.passes(60)
        await life.look()
    assert len(running_town.texts("rowan")) == 1


async def test_the_owner_and_the_soul_itself_are_not_forgotten(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("owner"), "@rowan.test are you there?")
    async with awake(home) as life:
        await life.look()
    for who in ("@owner.test", "rowan.test"):
        with pytest.raises(UsageError):
            await asyncio.to_thread(run_forget, home.root, who, as_json=False, yes=True)


async def test_whom_a_handle_means_is_known_from_the_settings_and_from_the_network(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, tobias = running_town.make_home("rowan"), running_town.account("tobias")
    async with awake(home):
        await asyncio.to_thread(run_mute, home.root, "@tobias.test", off=False, as_json=False)
    for who, did, count in (
        ("tobias.test", tobias, 1),
        ("owner.test", running_town.account("owner"), 0),
        ("x.test", "", 0),
    ):
        capsys.readouterr()
        await asyncio.to_thread(run_know, home.root, who, as_json=True)
        found = json.loads(capsys.readouterr().out)
        rights = next(one["count"] for one in found["held"] if one["store"] == "rights")
        assert (found["person"]["did"], rights) == (did, count)
    with pytest.raises(UsageError, match="is the owner"):
        await asyncio.to_thread(run_forget, home.root, "@Owner.test", as_json=False, yes=True)
    await asyncio.to_thread(run_forget, home.root, "tobias.test", as_json=False, yes=True)
    assert places_that_hold(home.root, tobias, "tobias") == []


async def test_a_mute_of_a_handle_that_was_the_owners_is_for_whoever_has_it_now(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, has_it = running_town.make_home("rowan"), running_town.account("owner")
    moved = running_town.network.create_account("owner-new.test", PASSWORD).did
    home.env.write_text(home.env.read_text().replace(has_it, moved))
    async with awake(home):
        pass
    await asyncio.to_thread(run_mute, home.root, "@owner.test", off=False, as_json=True)
    assert has_it in capsys.readouterr().out


async def test_only_a_mistake_in_a_setting_that_forgetting_needs_keeps_somebody_from_being_forgotten(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home):
        await asyncio.to_thread(run_mute, home.root, kit, off=False, as_json=False)
    valid = home.env.read_text()
    for mistake in ("OWNER_BLUESKY_SOCIAL_HANDLE_DID=somebody\n", "STORAGE_URL\n", "no setting at all\n"):
        home.env.write_text(valid + mistake)
        with pytest.raises(SettingsError):
            await asyncio.to_thread(run_forget, home.root, kit, as_json=False, yes=True)
    assert places_that_hold(home.root, kit)
    home.env.write_text(f"{valid}SOUL_TIMEZONE=Here\n")
    await asyncio.to_thread(run_forget, home.root, kit, as_json=False, yes=True)
    assert places_that_hold(home.root, kit) == []


async def test_it_asks_back_and_nobody_unknown_is_forgotten(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.look()
    asked: list[str] = []

    def no(question: str) -> str:
        asked.append(question)
        return "no"

    await asyncio.to_thread(run_forget, home.root, "@kit.test", as_json=False, ask=no)
    assert kit in asked[0]
    assert not ForgetRequests(home.memory).due(SystemClock().now())
    with pytest.raises(UsageError, match=r"Nobody is known by somebody\.test"):
        await asyncio.to_thread(run_forget, home.root, "somebody.test", as_json=False, ask=no)
    assert len(asked) == 1


async def test_a_memory_that_names_the_account_goes_and_one_from_before_they_met_stays_and_is_told(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    running_town.network.post_as(did, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        knowledge, now = life.app.services.knowledge, life.app.services.clock.now()
        early = NewMemory("person", "whom I shall meet", "@quillon.test knows roofs.", source="owner:main")
        await knowledge.stores.memories.save(early, now)
        await life.look()
        for new in (
            NewMemory("person", "Quillon, @quillon.test", "The owner had me mute him.", source="owner:main"),
            NewMemory("preference", "mutes", f"Never answer {did}.", source="owner:main"),
            NewMemory("fact", "my.quillon.test", "is a page, and no account"),
            NewMemory("person", "quillon's roof", "It leaks.", source="owner:main"),
        ):
            await knowledge.stores.memories.save(new, now)
        await knowledge.refresh()
        with closing(sqlite3.connect(home.database)) as connection, connection:
            connection.execute(
                "INSERT INTO archives (state, key, session_id, session_key, last_seq, message_count, metadata,"
                " distilled, prepared_at) VALUES ('done', 'k', 's', 'owner:terminal', 1, 1, '{}', ?, '2026-01-05')",
                (json.dumps({"summary": f"We spoke of {did} and the lantern.", "memories": []}),),
            )
        write_atomic(home.self_md, "# Rowan\n\n- Quillon (@quillon.test) taught me to wait.\n")
        await asyncio.to_thread(run_know, home.root, "quillon.test", as_json=True)
        held = {one["store"]: one for one in json.loads(capsys.readouterr().out)["held"]}
        assert held["memories"]["count"] == 2
        assert "SELF.md" in held["files"]["words"]
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    told = capsys.readouterr().out
    assert "memory 1, which is yours to change" in told, "by its handle, before it was met"
    assert "memories 5, which is yours to change" in told, "a note under its display name"
    assert told.count("soul.db: memory") == 1
    assert places_that_hold(home.root, did, "had me mute", "and the lantern") == []
    async with awake(home) as life:
        kept = [one.subject for one in await life.app.services.knowledge.stores.memories.listed()]
    assert kept == ["quillon's roof", "my.quillon.test", "mutes", "whom I shall meet"]


NOTE = "owes your sister seven copper lanterns"


async def test_the_owner_is_told_of_each_file_that_still_holds_a_forgotten_note(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, did = running_town.make_home("rowan"), running_town.account("quillon")
    running_town.network.post_as(did, "@rowan.test which roof is louder?")

    def mind(request: ChatRequest) -> Completion:
        if any(message.role == "tool" for message in request.messages):
            return Completion(text="I shall remember it of @quillon.test.")
        if any(offer.name == "memory_save" for offer in request.offers):
            return call("memory_save", kind="person", subject="Quillon, @quillon.test", body=f"Quillon {NOTE}.")
        return Completion(text="SUMMARY: we spoke of @quillon.test.")

    async with awake(home) as life:
        await life.look()
        running_town.mind.answer = mind
        await answered(life.app.owner, "Remember of @quillon.test: he owes my sister copper lanterns, seven.")
        await life.app.owner.start_afresh()
        running_town.mind.answer = replying("Good.")
        await answered(life.app.owner, "Good morning.")
    capsys.readouterr()
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    told = capsys.readouterr().out
    assert places_that_hold(home.root, NOTE) == []
    named = places_that_hold(home.root, "@quillon.test")
    assert any(one.startswith(".memory/store/") for one in named)
    assert [one for one in named if one.split(": ")[0].split("/")[-1] not in told] == []


async def test_a_display_name_that_anybody_can_choose_is_not_told_as_the_forgotten_person(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    did = running_town.network.create_account("mallory.test", PASSWORD, display_name="Sam").did
    async with awake(home) as life:
        memories, now = life.app.services.knowledge.stores.memories, life.app.services.clock.now()
        for number in range(14):
            await memories.save(NewMemory("person", f"Sam and thing {number}", f"Likes {number}."), now)
        running_town.network.post_as(did, "@rowan.test which roof is louder?")
        await life.look()
        await memories.save(NewMemory("fact", "fraud", "The account mallory.test sells roofs of air."), now)
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    told = capsys.readouterr().out
    assert "Still named in soul.db: memory 1," not in told, told
    assert "memory 15" in told, told


async def test_a_stranger_who_is_forgotten_takes_no_day_of_the_owner_s_talks_along(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    did, sam = running_town.account("mallory"), running_town.account("sam")
    talk = "We agreed that @sam.test builds the roof until Friday for 900. @mallory.test had asked about it, too."
    async with awake(home) as life:
        for one in (did, sam):
            running_town.network.post_as(one, "@rowan.test which roof is louder?")
        await life.look()
        memories, now = life.app.services.knowledge.stores.memories, life.app.services.clock.now()
        new = NewMemory("episode", "talk with the owner", talk, source="owner:terminal", trust="owner")
        await memories.save(new, now)
    await asyncio.to_thread(run_forget, home.root, did, as_json=False, yes=True)
    told = capsys.readouterr().out
    async with awake(home) as life:
        kept = [one.body for one in await life.app.services.knowledge.stores.memories.listed()]
    assert kept == [talk.replace("mallory.test", "forgotten.invalid")]
    assert "names taken out of 1 memory" in told


LANTERNS, GUTTERS = "Quagmire lanterns hum beside the weir", "Zinc gutters sing above the orchard"


def answers(town: RunningTown, *texts: str) -> None:
    said = iter(texts)

    def answer(request: ChatRequest) -> Completion:
        return replying(next(said))(request)

    town.mind.answer = answer


def rows_of(home: Home, query: str) -> list[str]:
    with closing(sqlite3.connect(home.database)) as connection:
        return [str(row[0]) for row in connection.execute(query)]


@pytest.mark.slow
@pytest.mark.parametrize("handle", ["handle.invalid", "given.up.test"])
async def test_two_accounts_seen_under_one_handle_are_two(running_town: RunningTown, handle: str) -> None:
    town, network = running_town, running_town.network
    home, ada, bob = town.make_home("rowan"), town.account("ada"), town.account("bob")
    answers(town, "Tin is louder, I think. And you?", "Inwards: the rain stays outside. Which do you like?")
    async with awake(home) as life:
        for did, words in ((ada, LANTERNS), (bob, GUTTERS)):
            network.post_as(did, f"@rowan.test {words}: which roof is louder?")
            # NOTE(self): the town itself does not give an account the handle of another one.
            object.__setattr__(network.find(did), "handle", handle)
            await life.look()
        assert await life.app.services.relationships.get(bob) is not None
    assert len(town.texts("rowan")) == 2
    with pytest.raises(UsageError):
        await asyncio.to_thread(run_forget, home.root, handle, as_json=False)
    await asyncio.to_thread(run_forget, home.root, ada, as_json=False, yes=True)
    assert places_that_hold(home.root, ada, LANTERNS) == []
    assert rows_of(home, "SELECT author_did FROM pending_notifications") == [bob]
    assert rows_of(home, "SELECT kind FROM intents WHERE kind = 'reply'") == ["reply"]
    assert [GUTTERS in one for one in rows_of(home, "SELECT content FROM session_messages WHERE seq = 1")] == [True]
    assert rows_of(home, "SELECT did FROM interactions") == rows_of(home, "SELECT did FROM people_met") == [bob]


@pytest.mark.slow
@pytest.mark.parametrize("archived", [False, True], ids=["going on", "archived"])
async def test_in_one_thread_what_the_other_said_and_was_answered_stays(
    running_town: RunningTown, *, archived: bool
) -> None:
    town, network = running_town, running_town.network
    home, ada, bob = town.make_home("rowan"), town.account("ada"), town.account("bob")
    ours = "Inwards: the rain stays outside. Which do you like?"
    answers(town, "Tin is louder, I think. And you?", ours, *["Nothing of it matters."] * 9)
    async with awake(home) as life:
        root, _ = network.post_as(ada, f"@rowan.test {LANTERNS}: which roof is louder?")
        await life.look()
        network.post_as(bob, f"@rowan.test {GUTTERS}: do doors open inwards?", reply_to_uri=root)
        life.passes(700)
        await life.look()
        if archived:
            life.passes(26 * 3600)
            await life.app.scheduler.run_guarded("heartbeat")
            await life.app.scheduler.run_guarded("sessions")
    assert len(places_that_hold(home.memory, GUTTERS)) > 0
    await asyncio.to_thread(run_forget, home.root, ada, as_json=False, yes=True)
    assert places_that_hold(home.root, ada, "ada.test", LANTERNS, "Tin is louder") == []
    assert rows_of(home, "SELECT json_extract(payload, '$.text') FROM pending_notifications") == [
        f"@rowan.test {GUTTERS}: do doors open inwards?"
    ]
    assert ours in " ".join(rows_of(home, "SELECT body FROM intents"))
    if archived:
        (kept,) = home.store.rglob("sessions/*.jsonl.gz")
        said = gzip.decompress(kept.read_bytes()).decode()
    else:
        said = " ".join(rows_of(home, "SELECT content FROM session_messages"))
    assert GUTTERS in said
    assert ours in said
