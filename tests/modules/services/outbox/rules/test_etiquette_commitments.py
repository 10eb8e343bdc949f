"""Acts on GitHub and in the agent space: they need a commitment, and they cost nothing on Bluesky."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from common.clock import FakeClock
from modules.services.outbox import policy as pace
from modules.services.outbox.bodies import IntentKind, OpaqueBody, PostBody
from modules.services.outbox.rules.policy import consent_by_commitment
from modules.services.outbox.rules.rules import POINTS_PER_HOUR
from modules.services.outbox.rules.types import TrustCircle
from modules.services.outbox.types import Intent, Pacing, ProposedAction
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.outbox.rules.etiquette_outbox import open_etiquette_outbox

CIRCLE = TrustCircle(own=set(), owner=set(), peers=set(), github={"rowan-soul", "owner-hub"})


def draft(kind: IntentKind = "issue", *, hold: str = "", by_owner: bool = False, **stored: Any) -> ProposedAction:
    return ProposedAction(body_of(kind, **stored), "commitment-1-a#1", hold=hold, by_owner=by_owner)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (draft(promise="c", source="space", repo="acme/site"), "hold"),
        (draft(promise="c", source="space", repo="acme/site", host_named=True), "pass"),
        (draft(promise="c", source="space", repo="acme/site", host_wish=True), "pass"),
        (draft(promise="c", source="space", repo="Owner-Hub/site"), "pass"),
        (draft("issue_comment", promise="c", source="space", repo="acme/site"), "hold"),
        (draft("issue_comment", promise="c", source="space", repo="acme/site", host_named=True), "pass"),
        (draft(promise="c", source="bluesky", repo="acme/site", host_named=True), "hold"),
        (draft("space_chat", promise="c"), "pass"),
        (draft(promise="c", source="bluesky", repo="acme/site"), "hold"),
        (draft(promise="c", source="bluesky", repo="Owner-Hub/site"), "pass"),
        (draft(promise="c", source="bluesky", repo="rowan-soul/notes"), "pass"),
        (draft(repo="rowan-soul/notes"), "block"),
        (draft(repo="rowan-soul/notes", hold="the owner decides"), "hold"),
        (draft(repo="acme/site", by_owner=True), "pass"),
    ],
)
def test_what_nobody_was_committed_stays_undone(act: ProposedAction, says: str) -> None:
    verdict = consent_by_commitment(act, CIRCLE)
    assert verdict.says == says
    assert verdict.reason


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"source": "workspace", "repo": "Acme/www-lil-intdev-site"}, "pass"),
        ({"source": "workspace", "repo": "acme/site"}, "block"),
        ({"source": "workspace", "repo": "acme/www-lil-intdev-site", "promise": "c"}, "hold"),
        ({"repo": "acme/www-lil-intdev-site"}, "block"),
    ],
)
async def test_work_in_a_workspace_that_is_watched_needs_no_commitment(
    tmp_path: Path, stored: dict[str, Any], says: str
) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        verdicts = await etiquette_outbox.verdicts(draft("ref", action="create", branch="b", **stored))
        assert verdicts["consent-by-commitment"].says == says


async def test_what_goes_elsewhere_takes_nothing_from_the_points_of_bluesky(tmp_path: Path) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        await etiquette_outbox.spend(int(POINTS_PER_HOUR.limit) - 3)
        for number in range(5):
            one = ProposedAction(body_of("issue", promise="c", source="space"), f"commitment-1-a#{number}")
            assert (await etiquette_outbox.outbox.submit(one)).accepted
        post = ProposedAction(PostBody(text="Rain."))
        assert "points-per-hour" not in await etiquette_outbox.blocked_by(post)


@pytest.mark.parametrize(
    ("kind", "last", "waits"),
    [
        ("issue", "post", 0),
        ("issue", "issue", 0),
        ("issue", "reply", 0),
        ("post", "issue", 0),
        ("like", "space_chat", 0),
        ("like", "reply", 10),
    ],
)
def test_each_service_has_a_pace_of_its_own(kind: IntentKind, last: IntentKind, waits: float) -> None:
    now = FakeClock().now()
    intent = Intent("1", kind, "t", OpaqueBody(), "", "", "", None, now.isoformat(), now.isoformat(), "pending")
    pacing = Pacing(post_s=1800, reply_s=60, like_s=45, follow_s=3600, action_s=10)
    assert pace.pace_wait(intent, acts={last: now}, pacing=pacing, now=now, started=now).seconds == waits


async def test_so_many_things_are_created_on_github_in_an_hour_and_a_share_of_them_is_the_owners(
    tmp_path: Path,
) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        departures = etiquette_outbox.sender.departures
        creating: tuple[IntentKind, ...] = ("issue", "issue_comment", "pull_request", "review")
        for number in range(24):
            body = body_of(creating[number % 4], promise="c", source="space", host_wish=True)
            assert (await etiquette_outbox.outbox.submit(ProposedAction(body, f"c#{number}"))).accepted
        labels = body_of("label", promise="c", source="space", host_wish=True)
        assert (await etiquette_outbox.outbox.submit(ProposedAction(labels, "c#labels"))).accepted
        await etiquette_outbox.drain(120)
        assert len(departures) == 15 + 1
        for number in range(6):
            body = body_of("issue_comment", promise="c", source="space", host_wish=True)
            assert (await etiquette_outbox.outbox.submit(ProposedAction(body, f"o#{number}", by_owner=True))).accepted
        await etiquette_outbox.drain(120)
        assert len(departures) == 20 + 1
        await etiquette_outbox.drain(3900)
        assert len(departures) == 24 + 1 + 6


@pytest.mark.parametrize(
    ("path", "by_owner", "says"),
    [
        (".github/workflows/test.yml", False, "hold"),
        (".GitHub/Workflows/test.yml", False, "hold"),
        (".github/actions/x/action.yml", False, "hold"),
        (".github/workflows/test.yml", True, "pass"),
        (".github/ISSUE_TEMPLATE.md", False, "pass"),
        ("docs/.github/workflows/a.yml", False, "pass"),
    ],
)
async def test_a_workflow_waits_for_the_owner(tmp_path: Path, path: str, *, by_owner: bool, says: str) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        act = draft("contents", path=path, promise="c", source="space", host_wish=True, by_owner=by_owner)
        verdicts = await etiquette_outbox.verdicts(act)
        assert verdicts["workflow-files"].says == says


@pytest.mark.parametrize(
    ("path", "says"),
    [("web/package-lock.json", "hold"), ("a.js", "pass")],
)
async def test_a_push_of_what_runs_for_others_waits_for_the_owner(tmp_path: Path, path: str, says: str) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        act = draft("push", branch="task-1-a", sha="a" * 40, folder="x", paths=("README.md", path))
        verdicts = await etiquette_outbox.verdicts(act)
        assert verdicts["workflow-files"].says == says
