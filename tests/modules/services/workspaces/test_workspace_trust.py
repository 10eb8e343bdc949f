"""Only these plans are executed: ours, the owner's, those of listed peers, and of whoever may push.

Proves by rows what is done with the issue that says that a workspace is finished. A verdict on a workspace is read
strictly; one that cannot be used is asked for once more, with what is wrong. One of several SOULs does what is to be
done once, and the others do it if that one does not. Proves which addresses name a workspace, and which workspaces a
post points to.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from adapters.github.client import GitHub
from adapters.github.types import Account, Comment, Issue, Repo
from common.clock import Clock, FakeClock, ScaledClock, iso, parse_iso
from modules.runtime.journal.types import Entry
from modules.services.pinned_names import PinnedNames
from modules.services.rituals.policy import memo_mark
from modules.services.workspaces.acting import OTHERS_AFTER, ActingTurns, is_acting_soul
from modules.services.workspaces.addresses import extract_workspace_urls, parse_github_workspace_url, workspaces_in
from modules.services.workspaces.health import HealthJudge, HealthVerdict, WorkspacePages, read_verdict
from modules.services.workspaces.sentinel import (
    CREATOR_GONE,
    SentinelCode,
    SentinelFacts,
    is_agreement_comment,
    is_creator_gone,
    judge_sentinel,
    sentinel_in,
)
from modules.services.workspaces.trust import READ_AGAIN_S, TrustedAccounts, WorkspaceTrust
from tests.counted_requests import CountedRequests
from tests.github_moves import delete_repo, rename_account, transfer_repo
from tests.modules.lives.bluesky.bluesky_values import notification
from tests.running_town import RunningTown, awake, call
from tests.shipped_skills import SHIPPED
from tests.trusting import account
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredRepo
from town.model.types import ChatRequest, Completion

ME, PEER, OWNER, KIT, STRANGER = "Rowan", "wren", "owner-hub", "kit", "eve"
TRUSTED = TrustedAccounts(
    account(ME), account(OWNER), frozenset({account(PEER), account("ash")}), frozenset({account(KIT)})
)
MADE = parse_iso("2026-03-02T10:00:00.000Z")


def at(hours: float) -> str:
    return iso(MADE + timedelta(hours=hours))


def issue(number: int = 7, author: str = ME, hours: float = 0, **more: Any) -> Issue:
    fields: dict[str, Any] = {"title": "t", "body": "", "state": "open", "labels": (), "assignees": (), "html_url": ""}
    return Issue(
        number=number,
        author=author,
        author_id=account(author).id,
        created_at=at(hours),
        updated_at=at(hours),
        **fields | more,
    )


def said(body: str, author: str = OWNER, hours: float = 1) -> Comment:
    return Comment(1, body, author, "", at(hours), at(hours), account(author).id)


def facts(*, closed_by: str | None = None, author: str = ME, **more: Any) -> SentinelFacts:
    state = "open" if closed_by is None else "closed"
    closer = closed_by or ""
    sentinel = issue(
        author=author, labels=("Finished",), state=state, closed_by=closer, closed_by_id=account(closer).id
    )
    return SentinelFacts(sentinel, TRUSTED, **more)


OTHER = issue(8, KIT, hours=-5)
WORK, AGREES = said("The search is still missing."), said("Looks good!", PEER, 2)
CASES: list[tuple[str, SentinelFacts, SentinelCode]] = [
    ("closed by us, who made it", facts(closed_by="rowan"), SentinelCode.CLEARED),
    ("closed by its author, a peer", facts(closed_by=PEER, author=PEER), SentinelCode.CLEARED),
    ("closed by nobody knows whom", facts(closed_by="", author=PEER), SentinelCode.CLEARED),
    ("closed by the owner", facts(closed_by=OWNER), SentinelCode.CLOSED_BY_PERSON),
    ("closed by a person, with work", facts(closed_by=OWNER, others=[OTHER]), SentinelCode.WORK_ELSEWHERE),
    (
        "closed by another SOUL, with work",
        facts(closed_by="ash", author=PEER, others=[OTHER]),
        SentinelCode.WORK_ELSEWHERE,
    ),
    ("closed by another SOUL, without", facts(closed_by="ash", author=PEER), SentinelCode.REOPEN),
    ("open, ours, nothing said", facts(looks_after=True, others=[OTHER]), SentinelCode.STANDS),
    ("open, ours, agreed", facts(looks_after=True, comments=[AGREES]), SentinelCode.AGREED),
    ("open, ours, work told", facts(looks_after=True, comments=[AGREES, WORK]), SentinelCode.FEEDBACK),
    ("told by a stranger", facts(looks_after=True, comments=[said("Do this", STRANGER)]), SentinelCode.STANDS),
    ("told before", facts(looks_after=True, comments=[replace(WORK, created_at=at(-1))]), SentinelCode.STANDS),
    (
        "said elsewhere",
        facts(looks_after=True, others=[OTHER], comments_on_others=[said("And this?", KIT)]),
        SentinelCode.SPOKEN_ELSEWHERE,
    ),
    (
        "said elsewhere before all agreed",
        facts(looks_after=True, comments=[AGREES], others=[OTHER], comments_on_others=[said("And this?", KIT)]),
        SentinelCode.AGREED,
    ),
    ("a new issue of a person", facts(looks_after=True, others=[issue(9, KIT, 1)]), SentinelCode.SPOKEN_ELSEWHERE),
    ("a new issue of a peer", facts(looks_after=True, others=[issue(9, PEER, 1)]), SentinelCode.SPOKEN_ELSEWHERE),
    (
        "a ritual's new memo",
        facts(looks_after=True, others=[issue(9, PEER, 1, body=memo_mark("at://did:plc:a/app.bsky.feed.post/1"))]),
        SentinelCode.STANDS,
    ),
    ("a new issue of a stranger", facts(looks_after=True, others=[issue(9, STRANGER, 1)]), SentinelCode.STANDS),
    (
        "a new pull request of a person",
        facts(looks_after=True, others=[issue(9, KIT, 1, is_pull_request=True)]),
        SentinelCode.STANDS,
    ),
]


@pytest.mark.parametrize(("given", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_row_decides(given: SentinelFacts, code: SentinelCode) -> None:
    decision = judge_sentinel(given)
    assert decision.code is code, decision.reason
    assert decision.reason


def test_what_tells_of_work_is_handed_on_without_agreement() -> None:
    more = said("And the map.", KIT, 3)
    assert judge_sentinel(facts(looks_after=True, comments=[WORK, AGREES, more])).feedback == (WORK, more)


def test_only_words_that_do_nothing_but_agree_are_agreement() -> None:
    agree = ["Agreed", " yes! ", "LGTM...", "+1", "Nothing else.", "all set?", "Ship it!!"]
    differ = [
        "",
        "not done",
        "yes, but the map is missing",
        "done\n\nexcept the map",
        "yes" + "!" * 130,
        "looks  good",
        "no",
    ]
    assert [one for one in agree if not is_agreement_comment(one)] == []
    assert [one for one in differ if is_agreement_comment(one)] == []


def test_the_lowest_open_sentinel_counts_whoever_made_it() -> None:
    marked: dict[str, Any] = {"labels": ("FINISHED", "x")}
    issues = [issue(9, **marked), issue(4, PEER, **marked), issue(3), issue(2, state="closed", **marked)]
    assert sentinel_in(issues) == issues[1]
    assert sentinel_in(issues[2:]) is None
    assert sentinel_in([issue(1, is_pull_request=True, **marked)]) is None


def test_an_author_without_a_sign_for_two_days_is_gone() -> None:
    one, hour = issue(author=PEER), timedelta(hours=1)
    assert not is_creator_gone(one, None, MADE + CREATOR_GONE)
    assert is_creator_gone(one, None, MADE + CREATOR_GONE + hour)
    assert not is_creator_gone(one, MADE + hour, MADE + CREATOR_GONE + hour)
    assert is_creator_gone(one, MADE - CREATOR_GONE, MADE + CREATOR_GONE + hour)


SITE = Repo("acme", "www-lil-intdev-site")


def test_accounts_are_told_apart_by_their_ids_alone() -> None:
    us, kit = Account(1, "rowan"), Account(2, "kit")
    trusted = TrustedAccounts(us, pushers=frozenset({kit}))
    assert trusted.why(Account(2, "renamed")) == "push"
    assert trusted.why(Account(3, "kit")) is None
    assert (trusted.covers(us), trusted.covers_besides_us(us)) == (True, False)


def test_an_account_that_is_gone_never_counts() -> None:
    ghost = Account(0, "ghost")
    assert not TrustedAccounts(ghost, ghost, frozenset({ghost}), frozenset({ghost})).covers(ghost)


@dataclass
class Workspace:
    network: GitHubNetwork
    repo: StoredRepo
    clock: FakeClock
    names: PinnedNames
    told: list[Entry]
    faults: GitHubFaults = field(default_factory=GitHubFaults)

    def account(self, login: str) -> Account:
        found = self.network.find(login)
        assert found
        return Account(found.id, found.login)

    def trust_of(self, login: str) -> WorkspaceTrust:
        account = self.network.find(login)
        assert account
        github = GitHub(
            api_url="http://github.test",
            login=login,
            token=account.token,
            clock=self.clock,
            min_spacing_s=0,
            transport=lambda: httpx.ASGITransport(github_app(self.network, faults=self.faults)),
        )
        return WorkspaceTrust(github, "owner", lambda: [self.account("wren")], self.clock, self.names)

    async def counted(self, trust: WorkspaceTrust, *logins: str) -> list[bool]:
        trusted = await trust.accounts(SITE)
        return [trusted.covers(self.account(login)) for login in logins]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    clock = FakeClock()
    network = GitHubNetwork(clock=clock, git_folder=tmp_path)
    for login in ("rowan", "kit", "mallory", "owner", "wren"):
        network.create_account(login)
    acme = network.create_account("acme", kind="Organization")
    repo = network.create_repo(acme, SITE.name, collaborators=["rowan", "kit"])
    told: list[Entry] = []

    async def record(entry: Entry) -> None:
        told.append(entry)

    return Workspace(network, repo, clock, PinnedNames(tmp_path / "names.json", clock, record), told)


async def test_who_may_push_counts_until_that_is_known_to_have_changed(workspace: Workspace) -> None:
    trust = workspace.trust_of("rowan")
    assert await workspace.counted(trust, "rowan", "owner", "wren", "kit", "mallory") == [True] * 4 + [False]
    workspace.repo.collaborators.discard("kit")
    assert await workspace.counted(trust, "kit") == [True]
    await workspace.clock.advance(READ_AGAIN_S)
    assert await workspace.counted(trust, "kit") == [False]


async def test_where_we_may_not_ask_who_may_push_nobody_counts_for_it(workspace: Workspace) -> None:
    assert await workspace.counted(workspace.trust_of("mallory"), "mallory", "owner", "kit") == [True, True, False]
    gone = await workspace.trust_of("rowan").accounts(Repo("acme", "gone"))
    assert not gone.covers(workspace.account("kit"))


@pytest.mark.parametrize("login", ["rowan", "mallory"])
async def test_a_login_that_is_gone_and_a_list_that_we_may_not_read_are_asked_for_every_quarter_of_an_hour(
    workspace: Workspace, login: str
) -> None:
    trust, requests = workspace.trust_of(login), CountedRequests(workspace.faults)
    await trust.accounts(SITE)
    owner = workspace.network.find("owner")
    assert owner
    rename_account(workspace.network, owner, "owner-2")
    await workspace.clock.advance(READ_AGAIN_S)
    for one in (trust, replace(trust, owner="nobody-there")):
        trusted = await one.accounts(SITE)
        assert trusted.is_whole
        requests.taken()
        assert await one.accounts(SITE) == trusted
        assert requests.taken() == 0
    await workspace.clock.advance(READ_AGAIN_S)
    await trust.accounts(SITE)
    assert requests.taken() > 1


async def test_a_login_that_somebody_else_took_over_has_no_rights(workspace: Workspace) -> None:
    trust = workspace.trust_of("rowan")
    assert await workspace.counted(trust, "owner", "kit") == [True, True]
    old = workspace.account("owner")
    for login in ("owner", "kit"):
        account = workspace.network.find(login)
        assert account
        rename_account(workspace.network, account, f"{login}-2")
        workspace.network.create_account(login)
    await workspace.clock.advance(READ_AGAIN_S)
    assert await workspace.counted(trust, "owner", "owner-2", "kit", "kit-2") == [False, True, False, True]
    assert old == workspace.account("owner-2")
    everywhere = await trust.people()
    assert (everywhere.is_owner(old), everywhere.is_owner(workspace.account("owner"))) == (True, False)
    assert workspace.names.has_passed_on("github", "owner")
    assert len(workspace.told) == 1


def transfer(workspace: Workspace) -> None:
    mallory = workspace.network.find("mallory")
    assert mallory
    transfer_repo(workspace.network, workspace.repo, mallory)


def recreate(workspace: Workspace) -> None:
    delete_repo(workspace.network, workspace.repo)
    workspace.network.create_repo(workspace.repo.owner, SITE.name, collaborators=["rowan", "mallory"])


@pytest.mark.parametrize("change", [transfer, recreate], ids=["transferred", "recreated"])
async def test_where_another_repository_answers_nobody_counts(
    workspace: Workspace, change: Callable[[Workspace], None]
) -> None:
    trust = workspace.trust_of("rowan")
    assert await workspace.counted(trust, "owner", "kit") == [True, True]
    change(workspace)
    await workspace.clock.advance(READ_AGAIN_S)
    assert await workspace.counted(trust, "owner", "wren", "kit", "mallory") == [False] * 4


GOOD = {"complete": False, "summary": "The map is missing.", "remaining": ["Build the map"]}
DONE = {"complete": True, "summary": "All is there.", "remaining": []}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"complete": "true"}, "Complete"),
        ({"summary": ""}, "Summary"),
        ({"summary": "x" * 81}, "Summary"),
        ({"summary": "a\nb"}, "Summary"),
        ({"remaining": "Build the map"}, "Remaining"),
        ({"remaining": [""]}, "Remaining"),
        ({"remaining": []}, "Contradiction"),
        ({"complete": True}, "Contradiction"),
    ],
)
def test_nothing_is_guessed(change: dict[str, Any], problem: str) -> None:
    assert read_verdict(GOOD | change) == problem


def test_what_is_no_verdict_is_told_as_such() -> None:
    assert read_verdict({}) == read_verdict({"complete": True}) == "No Verdict"


async def test_a_long_plan_is_cut_before_a_task_and_a_long_page_before_a_line(running_town: RunningTown) -> None:
    asked: list[str] = []

    def answer(request: ChatRequest) -> Completion:
        asked.append(request.messages[-1].text)
        return call("workspace_verdict", **DONE)

    tasks = [
        f"### Task {number}: Part {number}\n**Status:** completed\n{'x' * 900}\nEnd {number}."
        for number in (1, 2, 3, 4, 5)
    ]
    page = "\n".join(f"Row {number} {'y' * 190}." for number in range(30))
    running_town.mind.answer = answer
    async with awake(running_town.make_home("rowan")) as life:
        judge = HealthJudge(life.app.services.gateway, SHIPPED, Random(1))
        plan = "\n\n".join(["# [PLAN] A map", "## Goal\nIt shows.", *tasks])
        await judge.judge(WorkspacePages(Repo("acme", "www-lil-intdev-site"), {"README.md": page}, (plan,)))
    (prompt,) = asked
    assert [f"End {number}." in prompt for number in (1, 2, 3, 4, 5)] == [
        f"Part {n}" in prompt for n in (1, 2, 3, 4, 5)
    ]
    assert "2 more tasks" in prompt
    rows = [line for line in prompt.splitlines() if line.startswith("Row ")]
    assert all(line.endswith("y.") for line in rows)
    assert f"{30 - len(rows)} more lines" in prompt


@pytest.mark.parametrize(
    ("second", "verdict"),
    [(DONE, HealthVerdict(complete=True, summary="All is there.")), ({**GOOD, "remaining": []}, None)],
)
async def test_the_model_is_told_once_what_is_wrong(
    running_town: RunningTown, second: dict[str, Any], verdict: HealthVerdict | None
) -> None:
    asked: list[ChatRequest] = []

    def answer(request: ChatRequest) -> Completion:
        asked.append(request)
        return call("workspace_verdict", **({**GOOD, "summary": "x" * 99} if len(asked) == 1 else second))

    running_town.mind.answer = answer
    async with awake(running_town.make_home("rowan")) as life:
        judge = HealthJudge(life.app.services.gateway, SHIPPED, Random(1))
        pages = WorkspacePages(Repo("acme", "www-lil-intdev-site"), {"README.md": "A map."}, ("[PLAN] A map",))
        assert await judge.judge(pages) == verdict
    assert len(asked) == 2
    assert "at most 80 characters" in str(asked[1])
    assert "A map." in str(asked[0])


SOULS = ("rowan", "wren", "kit", "ash")


def peers_of(login: str) -> list[str]:
    return [one for one in SOULS if one != login]


def turns_of(login: str, clock: Clock, folder: Path) -> ActingTurns:
    return ActingTurns(lambda: login, lambda _: peers_of(login), clock, folder / f"{login}.json")


def test_each_piece_of_work_is_one_souls_and_the_work_is_shared() -> None:
    keys = [f"acme/site#{number}:stale" for number in range(200)]
    acting = [[one for one in SOULS if is_acting_soul(one, peers_of(one), key)] for key in keys]
    assert all(len(one) == 1 for one in acting)
    assert {login for one in acting for login in one} == set(SOULS)


async def test_the_others_act_after_ten_minutes_of_looking_at_the_same(tmp_path: Path) -> None:
    clock, speed = FakeClock(), 10.0
    turns = {one: turns_of(one, ScaledClock(clock, speed), tmp_path) for one in SOULS}
    key = "acme/site#4:superseded"
    first = [one for one, turn in turns.items() if turn.ask_for_turn(key)]
    assert len(first) == 1
    wait_s = OTHERS_AFTER.total_seconds() / speed
    await clock.advance(wait_s / 2)
    assert [one for one, turn in turns.items() if turn.ask_for_turn(key)] == first
    await clock.advance(wait_s / 2)
    assert [one for one, turn in turns.items() if turn.ask_for_turn(key)] == list(SOULS)
    assert [one for one, turn in turns.items() if turn.ask_for_turn("another")] != list(SOULS)


async def test_the_others_go_on_acting_while_it_is_found_and_wait_again_where_it_was_not(tmp_path: Path) -> None:
    clock = FakeClock()
    key = next(key for key in map(str, range(100)) if is_acting_soul("kit", peers_of("kit"), key))
    said = []
    for minutes in (10, 10, 60, 60, 10, 181):
        said.append(turns_of("wren", clock, tmp_path).ask_for_turn(key))  # as after a restart
        await clock.advance(60 * minutes)
    assert said == [False] + 5 * [True]
    assert not turns_of("wren", clock, tmp_path).ask_for_turn(key)


async def test_only_peers_that_were_seen_within_a_day_count(tmp_path: Path) -> None:
    clock = FakeClock()
    seen_at = clock.now()
    turns = ActingTurns(
        lambda: "wren", lambda since: ["kit"] if seen_at >= since else [], clock, tmp_path / "found.json"
    )
    key = next(key for key in map(str, range(100)) if is_acting_soul("kit", ["wren"], key))
    assert not turns.ask_for_turn(key)
    await clock.advance(24 * 3600 + 1)
    assert turns.ask_for_turn(key)


def test_whose_work_it_is_does_it_alone_and_one_of_the_others_for_who_is_gone(tmp_path: Path) -> None:
    clock = FakeClock()
    for number in range(20):
        key = f"acme/site#{number}/task-1"
        turns = {one: turns_of(one, clock, tmp_path) for one in SOULS}
        acting = {of: [one for one in SOULS if turns[one].ask_for_turn(key, of=of)] for of in ("Wren", "eve")}
        assert acting["Wren"] == ["wren"]
        assert len(acting["eve"]) == 1


GARDEN = Repo("owner-hub", "www-lil-intdev-garden")
ADDRESS = "https://github.com/owner-hub/www-lil-intdev-garden"


@pytest.mark.parametrize(
    "url",
    [
        ADDRESS,
        f"{ADDRESS}/issues/12#issuecomment-1",
        f"{ADDRESS}.git",
        f"{ADDRESS}....",
        f"{ADDRESS})",
        "github.com/Owner-Hub/WWW-lil-intdev-Garden",
        "http://www.github.com/owner-hub/www-lil-intdev-garden/",
    ],
)
def test_an_address_in_a_workspace_names_it(url: str) -> None:
    assert parse_github_workspace_url(url) == GARDEN


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/owner-hub/garden",
        "https://github.com/owner-hub/www-lil-intdev-",
        "https://github.com/owner-hub/www-lil-intdev-gar…",
        "https://github.com.evil.example/owner-hub/www-lil-intdev-garden",
        "https://evil.example/github.com/owner-hub/www-lil-intdev-garden",
        f"https://github.com/owner-hub/www-lil-intdev-{'a' * 81}",
    ],
)
def test_any_other_address_names_none(url: str) -> None:
    assert parse_github_workspace_url(url) is None


def test_a_text_is_read_for_all_workspaces_and_each_counts_once() -> None:
    text = f"See {ADDRESS}, {ADDRESS}/pull/3 and github.com/kit/www-lil-intdev-weir. Not github.com/kit/weir."
    assert extract_workspace_urls(text) == [GARDEN, Repo("kit", "www-lil-intdev-weir")]


def test_a_link_in_full_is_read_before_the_words_that_cut_it() -> None:
    cut = notification("github.com/owner-hub/www-lil-intdev-gar…")
    assert workspaces_in(cut) == []
    assert workspaces_in(replace(cut, links=("https://example.org", ADDRESS))) == [GARDEN]
    assert workspaces_in(replace(notification(f"see {ADDRESS}."), links=("https://example.org",))) == [GARDEN]
