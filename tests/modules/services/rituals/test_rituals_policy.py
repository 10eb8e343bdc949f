"""The rules on rituals: parts that all agents compute alike, recognition, and what an opening and a memo must be."""

from collections import Counter
from datetime import UTC, date, datetime

import pytest

from adapters.github.types import Repo
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.rituals.policy import (
    OpeningProblem,
    RitualRun,
    handles_of,
    meant_first,
    memo_place,
    memo_problem,
    memo_title,
    names_ritual,
    next_opening,
    opening_problem,
    ritual_key,
    ritual_role,
    workspace_of,
)

ROOT = "at://did:plc:abc/app.bsky.feed.post/1"
RITUAL = DailyRitual("Harbour watch", "daily", "www-lil-intdev-quay", ("@kit.test", "Ada (@Ada.Test)", "@me.test"))
INVITED = ("kit.test", "ada.test")
GOOD = "Harbour watch: the gauge is high. @kit.test @ada.test what moved first?"


def test_a_part_falls_to_each_agent_by_its_name_and_the_thread() -> None:
    assert [ritual_role(name, ROOT) for name in ("marvin", "rebecca", "peterben")] == ["analyst", "analyst", "critic"]
    shares = Counter(ritual_role("marvin", f"at://did:plc:abc/app.bsky.feed.post/{number}") for number in range(300))
    assert set(shares) == {"analyst", "critic", "observer"}
    assert min(shares.values()) > 60


@pytest.mark.parametrize(
    ("hour", "over", "opens"),
    [(8, (), 27), (22, (), 27), (23, (), 28), (8, (27,), 28)],
    ids=["today", "until the night", "in the night", "opened or given up"],
)
def test_a_ritual_opens_next_on_a_day_that_is_not_over_for_it(hour: int, over: tuple[int, ...], opens: int) -> None:
    days, now = [date(2026, 11, day) for day in over], datetime(2026, 11, 27, hour, 30, tzinfo=UTC)
    assert next_opening(RITUAL, days, now) == datetime(2026, 11, opens, 7)  # noqa: DTZ001 - wall-clock time


def test_participants_are_read_by_their_handles() -> None:
    assert handles_of(RITUAL, without="Me.test") == ["kit.test", "ada.test"]
    assert ritual_key("  Harbour *Watch*") == ritual_key("Harbour watch")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("HARBOUR-watch, day two", True),
        ("about www-lil-intdev-quay today", True),
        ("https://github.com/acme/www-lil-intdev-quay", True),
        ("Harbour watching is fun", False),
        ("the quay", False),
    ],
)
def test_a_text_names_a_ritual_by_its_name_or_its_workspace(text: str, names: bool) -> None:  # noqa: FBT001
    assert names_ritual(text, RITUAL) is names


def test_rituals_of_any_script_are_told_apart_named_and_opened() -> None:
    watch, walk = (DailyRitual(name, "daily", "quay") for name in ("港の見守り", "庭の散歩"))
    assert len({ritual_key(one) for one in ("港の見守り", "庭の散歩", "Утренний круг", "Вечерний круг", "Circle")}) == 5
    assert ritual_key("утренний *Круг*") == ritual_key("Утренний круг")  # noqa: RUF001 - as it is written
    text = "今日の港の見守りです。何が先に動きましたか？"  # noqa: RUF001 - as it is written
    assert opening_problem(text, watch, [], []) is None
    assert opening_problem(text, walk, [], []) == "Unnamed"


def test_of_rituals_with_one_workspace_the_one_that_is_named_itself_is_meant_the_longest_name_first() -> None:
    listed = [(name, DailyRitual(name, "daily", "quay")) for name in ("Watch", "Tide", "Evening tide")]
    assert meant_first("Evening tide in quay: what was left?", listed) == [listed[2], listed[1]]
    assert meant_first("At the quay: what was left?", listed) == listed


def test_a_workspace_is_one_that_is_watched_and_only_one() -> None:
    quay, other = Repo("acme", "www-lil-intdev-Quay"), Repo("elsewhere", "www-lil-intdev-quay")
    watched = {one: [one.full_name] for one in (quay, other)}
    assert workspace_of(RITUAL, {quay: watched[quay]}) == quay
    assert workspace_of(RITUAL, watched) is None
    assert workspace_of(DailyRitual("X", "daily", "acme/www-lil-intdev-quay"), watched) == quay
    assert workspace_of(DailyRitual("X", "daily", "intdev-quay"), watched) is None
    assert workspace_of(RITUAL, {}) is None
    pier = Repo("acme", "www-lil-intdev-pier")
    assert workspace_of(RITUAL, {pier: [pier.full_name, quay.full_name]}) == pier


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD, None),
        (" ", "Empty"),
        (f"{GOOD} {'x' * 300}", "Too Long"),
        (GOOD.replace("Harbour watch", "Look"), "Unnamed"),
        (f"{GOOD} @eve.test", "Others Named"),
        (GOOD.replace("@ada.test ", ""), "Uninvited"),
        (GOOD.replace("what moved first?", "วันนี้คุณเห็นอะไรบ้าง"), None),
        (GOOD.replace("what moved first?", "Τι βλέπετε σήμερα;"), None),  # noqa: RUF001
        (GOOD.replace("what moved first?", "今日は何が見えますか。"), None),
        (f"{GOOD} And then?", "No Question"),
    ],
)
def test_an_opening_names_those_invited_and_asks_no_second_question(text: str, problem: OpeningProblem | None) -> None:
    assert opening_problem(text, RITUAL, INVITED, ["Another day. What then?"]) == problem


def test_an_opening_says_nothing_twice() -> None:
    assert opening_problem(GOOD, RITUAL, INVITED, [GOOD.upper()]) == "Said Before"
    assert opening_problem(f"Day 2. {GOOD}", RITUAL, INVITED, [f"Day 1. {GOOD}"]) == "Said Before"


def test_the_issue_of_a_memo_is_read_from_its_address_and_from_that_of_a_comment_on_it() -> None:
    page = "https://github.com/acme/www-lil-intdev-quay"
    place = (Repo("acme", "www-lil-intdev-quay"), 12)
    assert memo_place(f"{page}/issues/12") == memo_place(f"{page}/issues/12#issuecomment-7") == place
    assert [memo_place(url) for url in ("", page, f"{page}/pull/12", f"{page}/issues/new")] == [None] * 4


def test_a_memo_says_something_of_its_own() -> None:
    body = "**Pick:** the cracks under the ivy. **Why:** both grew."
    assert memo_problem("The wall", body, ["Something else"]) is None
    assert memo_problem(" ", body, []) == "No Title"
    assert memo_problem("The wall", "Yes.", []) == "Empty"
    assert memo_problem("The wall", body, [body.lower()]) == "Repeats"
    run = RitualRun("harbour-watch", date(2026, 11, 27), "Harbour watch", "participant", ROOT, "did:plc:abc")
    assert memo_title(run, "The\nwall") == "Harbour watch, 2026-11-27: The wall"
