"""Proves that the doctor checks whether the room is there, and whether GitHub knows us by the configured name.

The doctor's question to the model is one more call of the day: counted, and not asked past the limit. The doctor finds
out whether the owner can command the SOUL by direct message. It checks the remote stores where a SOUL keeps things, and
shows none of their secrets.
"""

import json
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.space.server import SpaceServer
from common.clock import SystemClock, iso
from common.result import Ok
from modules.runtime.budget.policy import day_of
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from soul.commands.doctor import examine, examine_keeping, examine_outside
from soul.commands.findings import Finding
from soul.commands.tasks import task_lines
from tests.modules.runtime.llm.scripted_model import says, serving
from tests.program import one_clear_line, soul
from tests.running_town import RunningTown, awake, settings_of
from tests.town_github import TownGitHub
from town.atproto.index import FOLLOW
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve


@pytest.fixture
async def github_url() -> AsyncIterator[str]:
    network = GitHubNetwork(clock=SystemClock())
    network.create_account("rowan", token="ghp_rowan")
    async with serve(github_app(network)) as url:
        yield url


async def examined(running_town: RunningTown, **settings: str) -> dict[str, Finding]:
    home = running_town.make_home("rowan", SOUL_ALLOW_PRIVATE_NET="on", **settings)
    return {found.check: found for found in await examine_outside(settings_of(home), home)}


async def test_without_room_and_account_nothing_is_wrong(running_town: RunningTown) -> None:
    found = await examined(running_town)
    assert {name: one.level for name, one in found.items()} == {"GitHub": "ok"}


async def test_a_room_that_listens_is_seen_without_joining_it_and_one_that_does_not_has_a_remedy(
    running_town: RunningTown,
) -> None:
    server = SpaceServer()
    started = await server.start(0)
    assert isinstance(started, Ok)
    url = f"ws://127.0.0.1:{started.data}?token=hush-hush-hush"
    there = (await examined(running_town, SPACE_URL=url))["room"]
    assert server.get_connected_agents() == ()
    await server.stop()
    gone = (await examined(running_town, SPACE_URL=url))["room"]
    assert (there.level, gone.level, gone.remedy) == ("ok", "warn", "Start it: soul space")
    assert "hush" not in there.message + gone.message


@pytest.mark.parametrize(("url", "asked"), [("ws://127.0.0.1", "127.0.0.1:80"), ("wss://127.0.0.1", "127.0.0.1:443")])
async def test_a_room_is_looked_for_at_the_port_where_it_would_be_joined(
    running_town: RunningTown, url: str, asked: str
) -> None:
    assert asked in (await examined(running_town, SPACE_URL=url))["room"].message


@pytest.mark.parametrize(
    ("port", "security"), [("99999", ()), ("abc", ()), ("abc", ("--security",))], ids=["too_large", "word", "security"]
)
@pytest.mark.slow
async def test_a_port_that_is_none_is_one_finding_with_a_remedy(
    running_town: RunningTown, port: str, security: tuple[str, ...]
) -> None:
    home = running_town.make_home("rowan", SPACE_URL=f"ws://127.0.0.1:{port}")
    found = await soul("doctor", *security, "--home", str(home.root))
    one_clear_line(found, "✗ settings: SPACE_URL must be a URL", ".env")


@pytest.mark.parametrize(
    ("login", "token", "level", "says"),
    [
        ("rowan", "ghp_rowan", "ok", "logged in as rowan"),
        ("Rowan", "ghp_rowan", "ok", "logged in as rowan"),
        ("maren", "ghp_rowan", "fail", "the token is rowan's, but .env says maren"),
        ("rowan", "", "fail", "AGENT_GITHUB_TOKEN is missing"),
        ("", "ghp_rowan", "fail", "AGENT_GITHUB_USERNAME is missing"),
    ],
)
async def test_github_is_asked_who_we_are(
    running_town: RunningTown, github_url: str, *, login: str, token: str, level: str, says: str
) -> None:
    found = (
        await examined(running_town, GITHUB_API_URL=github_url, AGENT_GITHUB_USERNAME=login, AGENT_GITHUB_TOKEN=token)
    )["GitHub"]
    assert (found.level, found.message) == (level, says)


async def test_a_token_that_github_refuses_is_one_line_with_a_remedy(
    running_town: RunningTown, github_url: str
) -> None:
    found = (
        await examined(
            running_town, GITHUB_API_URL=github_url, AGENT_GITHUB_USERNAME="rowan", AGENT_GITHUB_TOKEN="ghp_old"
        )
    )["GitHub"]
    assert (found.level, found.remedy) == ("fail", "Check AGENT_GITHUB_TOKEN.")
    assert "ghp_old" not in found.message


async def test_the_workspace_of_an_organisation_is_looked_for_and_what_it_would_be_made_from(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async def found(**settings: str) -> Finding:
        home = town_github.make_home(**settings)
        (one,) = [one for one in await examine_outside(settings_of(home), home) if one.check == "workspace"]
        return one

    acme = {"WORKSPACE_ORG": "acme", "WORKSPACE_TEMPLATE": "acme/site"}
    assert (await found(**acme | {"WORKSPACE_ORG": "nobody"})).remedy == "Check WORKSPACE_ORG."
    assert (await found(**acme)).message == "acme has none, and none can be made: acme/site is no template repository"
    town_github.repo.is_template = True
    assert (await found(**acme)).message == "acme has none; it can be made from acme/site when you ask for it"
    town_github.add_repo("www-lil-intdev-garden")
    there = await found(**acme)
    assert (there.level, there.message) == ("ok", f"that of acme is {town_github.url}/acme/www-lil-intdev-garden")


async def test_a_wrong_repository_for_reports_or_for_its_program_is_told(town_github: TownGitHub) -> None:
    async def found(name: str, place: str) -> tuple[str, str]:
        home = town_github.make_home(**{name: place})
        (one,) = [one for one in await examine_outside(settings_of(home), home) if one.check == name]
        return one.level, one.message

    makers, own = "SOUL_MAKER_REPOSITORY", "SOUL_PROGRAM_REPOSITORY"
    theirs = town_github.network.create_repo(town_github.repo.owner, "program")
    assert (await found(makers, "acme/nothing"))[0] == "warn"
    assert await found(makers, "acme/program") == ("ok", "issues can be opened in acme/program")
    assert await found(own, "acme/program") == ("warn", "the account may not push to acme/program")
    assert await found(own, "acme/site") == ("ok", "issues can be opened in acme/site, and branches pushed")
    theirs.has_issues = False
    assert await found(makers, "acme/program") == (
        "warn",
        "acme/program has its issues switched off, as forks have at first",
    )


async def test_what_a_token_may_do_is_told_scope_by_scope_and_another_soul_with_the_account_is_named(
    running_town: RunningTown,
) -> None:
    network = GitHubNetwork(clock=SystemClock())
    rowan = network.create_account("rowan", token="ghp_rowan")
    network.issue_token(rowan, "ghp_little", ("public_repo", "delete_repo"))
    network.issue_token(rowan, "ghp_reader", ("notifications",))
    network.issue_token(rowan, "github_pat_rowan")
    account = {"AGENT_GITHUB_USERNAME": "rowan", "SOUL_ALLOW_PRIVATE_NET": "on"}

    async def findings(token: str) -> list[Finding]:
        home = running_town.make_home("rowan", GITHUB_API_URL=url, AGENT_GITHUB_TOKEN=token, **account)
        peers = {
            "maren.test": {**_PEER, "github_username": "maren.test", "claims_github": "Rowan"},
            "ilse": {**_PEER, "github_username": "ilse"},
            "bad": 7,
        }
        home.memory.mkdir(exist_ok=True)
        (home.memory / "discovered_peers.json").write_text(json.dumps({"peers": peers}))
        return [one for one in await examine_outside(settings_of(home), home) if one.check.startswith("GitHub")]

    async with serve(github_app(network)) as url:
        whole, little, reader, fine = [
            await findings(token) for token in ("ghp_rowan", "ghp_little", "ghp_reader", "github_pat_rowan")
        ]
    assert [one.level for one in whole] == ["ok", "ok", "warn"]
    assert "repo, notifications, read:org, user" in whole[1].message
    assert "@maren.test" in whole[2].message
    assert "cannot review each other" in whole[2].message
    assert [one.level for one in little[2:-1]] == ["warn"] * 5
    lacking = ("repo", "notifications or repo", "read:org", "user:follow", "delete_repo")
    for scope, one in zip(lacking, little[2:-1], strict=True):
        assert f"the scope {scope}" in one.message
    assert {one.level for one in reader[2:-1]} == {"fail"}
    assert "public_repo or repo" in reader[2].message
    assert "notifications" in fine[2].message
    assert all("classic token" in one.remedy for one in fine[2:-1])


_PEER = {
    "bluesky_handle": "maren.test",
    "discovered_at": "2026-01-05T12:00:00Z",
    "discovered_via": "social",
    "confidence": "low",
    "last_seen_at": "2026-01-05T12:00:00Z",
}


CAP = 100_000


async def about_the_model(home: Home, *, measure: bool = True) -> Finding:
    (finding,) = [item for item in await examine(home.root, measure=measure) if item.check == "model"]
    return finding


async def calls(home: Home) -> list[tuple[str, str, str]]:
    database = await Database.beside(home.database)
    rows = await database.run(
        lambda connection: connection.execute(
            "SELECT purpose, importance, state FROM model_calls WHERE purpose != 'earlier'"
        ).fetchall()
    )
    await database.close()
    return [tuple(row) for row in rows]


async def make_database(home: Home, *, spent: int = 0) -> None:
    """Create a database as an earlier life leaves it, with `spent` tokens used today."""
    home.memory.mkdir(mode=0o700, exist_ok=True)
    now = SystemClock().now()

    def spend(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
            " cost_micro_usd) VALUES ('1', ?, ?, 'earlier', 'owner', 'test-mind', 'settled', ?, 0, 0)",
            (day_of(now, ""), iso(now), spent),
        )

    database = await Database.open(home.database, MIGRATIONS)
    await database.run(spend)
    await database.close()


async def test_its_question_is_counted_in_the_ledger_of_the_day(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY=str(CAP))
    await make_database(home)
    assert (await about_the_model(home)).level == "ok"
    assert await calls(home) == [("doctor", "owner", "settled")] * 2


async def test_when_the_day_is_used_up_it_asks_nothing_and_says_so(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY=str(CAP))
    await make_database(home, spent=CAP - 1)
    finding = await about_the_model(home)
    assert (finding.level, running_town.mind.asked, await calls(home)) == ("warn", [], [])
    assert "not asked: The day's budget does not allow it" in finding.message
    assert "BUDGET_TOKENS_PER_DAY" in finding.remedy


async def test_an_address_where_no_models_are_found_is_doubted(running_town: RunningTown) -> None:
    with serving() as model:
        home = running_town.make_home("rowan", AI_GATEWAY_BASE_URL=model.url)
        finding = await about_the_model(home, measure=False)
    assert (finding.level, "/v1" in finding.remedy) == ("warn", True)


async def test_without_a_budget_it_asks_nothing(running_town: RunningTown) -> None:
    finding = await about_the_model(running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0"))
    assert (finding.level, running_town.mind.asked) == ("warn", [])


async def test_before_the_first_life_it_asks_and_makes_no_database(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    assert (await about_the_model(home)).level == "ok"
    assert len(running_town.mind.asked) == 2
    assert not home.database.exists()


def _of_an_older_version(home: Home) -> None:
    sqlite3.connect(home.database).close()


def _damaged(home: Home) -> None:
    home.database.write_bytes(b"no database at all, but long enough to be read as the head of one" * 100)


@pytest.mark.parametrize("spoil", [_of_an_older_version, _damaged])
async def test_what_cannot_be_counted_is_not_asked(running_town: RunningTown, spoil: Callable[[Home], None]) -> None:
    home = running_town.make_home("rowan")
    home.memory.mkdir(mode=0o700)
    spoil(home)
    finding = await about_the_model(home)
    assert (finding.level, running_town.mind.asked) == ("fail", [])
    assert finding.remedy


async def test_a_model_without_a_known_price_is_not_asked_where_dollars_are_capped(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_USD_PER_DAY="1")
    await make_database(home)
    finding = await about_the_model(home)
    assert (finding.level, running_town.mind.asked) == ("fail", [])
    assert "MODEL_PRICES" in finding.remedy


@pytest.mark.parametrize(("kept", "level"), [(8_192, "warn"), (200_000, "ok")])
async def test_a_service_that_keeps_less_than_it_is_sent_is_found(
    running_town: RunningTown, kept: int, level: str
) -> None:
    whole = says("ready")
    usage = {"prompt_tokens": kept, "completion_tokens": 1}
    with serving() as model:
        home = running_town.make_home("rowan", AI_GATEWAY_BASE_URL=model.url)
        model.plays(whole, replace(whole, chunks=(*whole.chunks[:-1], {"choices": [], "usage": usage})))
        (found,) = [item for item in await examine(home.root, measure=True) if item.check == "context"]
    assert found.level == level
    assert (f"CONTEXT_TOKENS={kept}" in found.remedy) is (level == "warn")
    assert len(json.dumps(model.requests[1])) > 4 * 8_192


@pytest.mark.parametrize(
    ("follows", "has_lived", "more", "level"),
    [
        (False, True, {}, "warn"),
        (False, False, {}, "ok"),
        (True, True, {}, "ok"),
        (False, True, {"SOUL_MESSAGES_FROM": "all"}, "ok"),
        (False, True, {"SOUL_DIRECT_MESSAGES": "off"}, None),
    ],
)
async def test_doctor_says_whether_messages_of_the_owner_reach_it(
    running_town: RunningTown, *, follows: bool, has_lived: bool, more: dict[str, str], level: str | None
) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0", **more)
    if follows:
        record = {"subject": running_town.account("owner"), "createdAt": "2026-01-05T12:00:00.000Z"}
        running_town.network.create(running_town.account("rowan"), FOLLOW, record)
    if has_lived:
        home.memory.mkdir()
        await (await Database.open(home.database, MIGRATIONS)).close()
    found = {one.check: one for one in await examine(home.root)}
    one = found.get("direct messages")
    assert (one.level if one else None) == level
    assert level != "warn" or (one is not None and one.remedy)


async def test_doctor_needs_no_temporary_folder_and_leaves_no_session_behind(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0")
    before = set(home.root.rglob("*"))
    tempfile.tempdir = str(tmp_path / "nowhere")
    try:
        found = {one.check: one.level for one in await examine(home.root)}
    finally:
        tempfile.tempdir = None
    assert (found["disk"], found["Bluesky"], found["owner"]) == ("ok", "ok", "ok")
    assert set(home.root.rglob("*")) == before


NOWHERE = "127.0.0.1:1"


async def look(home: Home) -> list[Finding]:
    return await examine_keeping(settings_of(home), home)


async def test_where_all_lies_in_the_home_there_is_nothing_to_look_at(running_town: RunningTown) -> None:
    assert await look(running_town.make_home("rowan")) == []


async def test_a_store_that_answers_is_well(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", STORAGE_URL="memory://")
    assert await look(home) == [Finding("store", "ok", "it can be read")]


async def test_a_store_that_is_away_is_told_with_what_to_check(running_town: RunningTown) -> None:
    away = running_town.make_home(
        "rowan",
        STORAGE_URL=f"s3://bucket?endpoint=http://{NOWHERE}",
        STORAGE_ACCESS_KEY_ID="who",
        STORAGE_SECRET_ACCESS_KEY="a-secret-of-the-store",
    )
    (found,) = await look(away)
    assert (found.check, found.level) == ("store", "fail")
    assert "STORAGE_ACCESS_KEY_ID" in found.remedy
    assert "a-secret-of-the-store" not in found.message + found.remedy


async def test_that_it_takes_no_tasks_is_told_wherever_its_tasks_are(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_ALLOW_PRIVATE_NET="on", SOUL_CODING="off")
    settings, clock = settings_of(home), SystemClock()
    async with awake(home):
        pass
    told = [
        [one.message for one in await examine(home.root)],
        day_lines(DayReader(settings, home, clock).read()),
        task_lines([], settings),
    ]
    assert [sum("SOUL_CODING" in line for line in lines) for lines in told] == [1, 1, 1]
    is_on = settings.model_copy(update={"soul_coding": True})
    assert not any("SOUL_CODING" in line for line in task_lines([], is_on))
