"""Tests of a text that somebody else edits between our read and our write: both changes stand, or the loss is told."""

import pytest

from adapters.github.client import GitHub
from adapters.github.history import LostEdit
from adapters.github.rewriting import rewrite
from adapters.github.types import Comment, Issue
from common.result import ApiResult, Err
from tests.adapters.github.github_town import REPO, GitHubTown
from tests.adapters.results import err, ok
from town.github.values import Fault

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = "Sow: open\nWater: open\n"
NOT_OPEN = Err("it is not open", "conflict")


def sown(issue: Issue) -> str | Err:
    return issue.body.replace("Sow: open", "Sow: done") if "Sow: open" in issue.body else NOT_OPEN


async def sow(github: GitHub) -> ApiResult[Issue]:
    return await rewrite(
        github,
        (REPO, 1),
        lambda: github.get_issue(REPO, 1),
        sown,
        lambda body: github.update_issue(REPO, 1, body=body),
    )


def bea_writes(town: GitHubTown, old: str, new: str) -> None:
    """Have bea edit the issue right before the next request that changes a text leaves."""

    def edit() -> None:
        issue, bea = town.repo.issues[1], town.network.find("bea")
        assert issue
        assert bea
        town.network.change_issue(town.repo, issue, bea, body=(issue.body or "").replace(old, new))

    town.before_write.append(edit)


@pytest.mark.parametrize("edited", [False, True])
async def test_a_text_has_its_whole_history_newest_first(town: GitHubTown, ada: GitHub, *, edited: bool) -> None:
    issue = ok(await ada.create_issue(REPO, "Peas", BODY))
    for text in ("Two", "Three") if edited else ():
        town.clock.jump(60)
        ok(await ada.update_issue(REPO, 1, body=text))
    found = [(one.body, one.editor, one.at) for one in ok(await ada.edits(issue.node_id))]
    assert found == (
        [
            ("Three", "ada", "2026-01-05T12:02:00Z"),
            ("Two", "ada", "2026-01-05T12:01:00Z"),
            (BODY, "ada", "2026-01-05T12:00:00Z"),
        ]
        if edited
        else []
    )


@pytest.mark.parametrize(
    ("edits", "stands"),
    [
        ([], "Sow: done\nWater: open\n"),
        ([("Water: open", "Water: done")], "Sow: done\nWater: done\n"),
    ],
)
async def test_the_change_is_made_to_what_others_wrote_meanwhile(
    town: GitHubTown, edits: list[tuple[str, str]], stands: str
) -> None:
    lost: list[LostEdit] = []
    ada = town.client(on_lost_edit=lost.append)
    ok(await ada.create_issue(REPO, "Peas", BODY))
    for old, new in edits:
        bea_writes(town, old, new)
    town.seen.clear()
    assert ok(await sow(ada)).body == stands
    assert ok(await ada.get_issue(REPO, 1)).body == stands
    assert (lost, len(town.seen)) == ([], 4 + 2 * len(edits))


async def test_a_text_that_the_change_does_not_fit_any_more_is_put_back(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Peas", BODY))
    bea_writes(town, "Sow: open", "Sow: by bea")
    assert err(await sow(ada)) == NOT_OPEN
    assert ok(await ada.get_issue(REPO, 1)).body == "Sow: by bea\nWater: open\n"


@pytest.mark.parametrize(
    ("is_refused", "stands", "told"),
    [
        (True, "Sow: done\nWater: open\n", "Sow: open\nWater: done\n"),
        (False, "Sow: done\nWater: done\n", "Sow: done\nWater: twice\n"),
    ],
)
async def test_an_edit_that_is_not_put_back_is_told(
    town: GitHubTown, stands: str, told: str, *, is_refused: bool
) -> None:
    lost: list[LostEdit] = []
    ada = town.client(on_lost_edit=lost.append)
    ok(await ada.create_issue(REPO, "Peas", BODY))
    bea_writes(town, "Water: open", "Water: done")
    if is_refused:
        town.before_write.append(lambda: town.faults.arm(Fault("server_error")))
    else:
        bea_writes(town, "Water: open", "Water: twice")
    assert ok(await sow(ada)).body == stands
    assert ok(await ada.get_issue(REPO, 1)).body == stands
    (one,) = lost
    assert (one.repo, one.number, one.edit.body, one.edit.editor) == (REPO, 1, told, "bea")


async def test_what_a_person_adds_to_a_comment_of_ours_stays(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Peas", BODY))
    comment = ok(await town.client("bea").create_comment(REPO, 1, "Mine until noon."))

    def later(one: Comment) -> str:
        return one.body.replace("noon", "night")

    def edit() -> None:
        issue, account = town.repo.issues[1], town.network.find("ada")
        assert issue
        assert account
        town.network.change_comment(town.repo, issue, issue.comments[0], account, f"{comment.body} Fine.")

    bea = town.client("bea")
    town.before_write.append(edit)
    changed = await rewrite(
        bea,
        (REPO, 1),
        lambda: bea.get_comment(REPO, comment.id),
        later,
        lambda body: bea.edit_comment(REPO, comment.id, body),
    )
    assert ok(changed).body == "Mine until night. Fine."
