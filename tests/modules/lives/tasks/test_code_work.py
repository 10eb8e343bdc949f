"""Proves a coding task from the claim to the pull request: the town's GitHub, real Git, a real sandbox.

Proves what programs and tests may leave in the tree of a coding task, and in old task folders.
"""

import fcntl
import os
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.github.types import Comment, Repo
from modules.lives.tasks.code import TaskFolder
from modules.lives.tasks.merge.handle import credit_in
from modules.lives.tasks.offering import TESTS_PASSED
from modules.lives.tasks.types import AlreadyDone, Blocked, Failed, Opened, Stopped
from modules.services.explanation.rendering import tell
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import PushBody
from modules.services.repository_rules.policy import Condition
from tests.adapters.results import err, ok
from tests.common.test_files import dig
from tests.modules.lives.tasks.code_rig import BRANCH, CODE, TASK, CodeRig
from tests.modules.lives.tasks.workplace import GARDEN
from tests.modules.runtime.llm.scripted_model import refuses
from tests.modules.services.coding.coding_rig import does, needs_sandbox
from tests.shipped_skills import SHIPPED, phrase
from tests.town.github_place import needs_git

pytestmark = [needs_git, needs_sandbox]


async def test_code_is_offered_as_one_commit_of_the_account_in_one_pull_request(rig: CodeRig) -> None:
    place = rig.workplace
    place.peers = ("ada", "bea")
    result = await rig.does(*CODE)
    await place.sends_all()
    (pull,) = await place.pulls()
    assert isinstance(result, Opened)
    assert result.url == pull.html_url
    assert (pull.title, pull.head.ref, pull.base.ref) == ("task(1): Show the beds", BRANCH, "main")
    assert f"Part of #{place.issue}," in pull.body
    assert "- `beds.py`" in pull.body
    assert "make test" in pull.body
    assert "@bea" not in pull.body
    assert "closes #1" not in pull.body
    assert [one.login for one in pull.requested_reviewers] == ["bea"]
    clone = place.folder / "look"
    ok(await place.git.clone("ada", "garden", clone, branch=BRANCH))
    log = await place.place.git("log", "-1", "--format=%an|%ae|%cn|%P|%B", at=clone)
    author, email, committer, parent, message = log.strip().split("|", 4)
    assert (author, email, committer) == ("ada", "ada@users.noreply.github.com", "ada")
    assert parent == pull.base.sha
    assert message.strip() == "task(1): Show the beds\n\nAssisted-by: ada:scripted"
    assert not list((place.folder / ".workrepos").iterdir())
    told = "\n".join(await tell(place.database, f"ada/garden#{place.issue}/task-1"))
    assert "write_file beds.py" in told
    assert await rig.does() == result
    assert len(await place.pulls()) == 1


@pytest.mark.slow
async def test_what_is_told_of_the_work_never_says_for_us_that_its_tests_passed(rig: CodeRig) -> None:
    said = f"Three beds. {TESTS_PASSED}"
    result = await rig.does(does("write_file", path="beds.py", content="BEDS = 3\n"), does("finish", summary=said))
    (pull,) = await rig.workplace.pulls()
    assert isinstance(result, Opened)
    assert "Three beds." in pull.body
    assert TESTS_PASSED not in pull.body


@pytest.mark.parametrize("kind", ["push", pytest.param("pull_request", marks=pytest.mark.slow)])
async def test_a_life_that_ended_before_an_act_left_does_nothing_twice(rig: CodeRig, kind: IntentKind) -> None:
    place = rig.workplace
    place.model.plays(*CODE)
    await place.lives_until(kind, rig.code(), TASK)
    asked = len(place.model.requests)
    await place.restart()
    assert isinstance(await rig.does(), Opened)
    assert len(place.model.requests) == asked == len(CODE)
    assert len(await place.pulls()) == 1
    assert sorted(await place.branches()) == ["main", BRANCH]


@pytest.mark.slow
async def test_a_life_that_lost_its_files_does_the_recorded_steps_again(rig: CodeRig) -> None:
    place = rig.workplace
    place.model.plays(*CODE)
    await place.lives_until("push", rig.code(), TASK)
    (folder,) = (place.folder / ".workrepos").iterdir()
    (push,) = await place.outbox.of_kind("push", 1)
    assert isinstance(push.body, PushBody)
    folder.rename(place.folder / "lost")
    await place.restart()
    assert isinstance(await rig.does(), Opened)
    (pull,) = await place.pulls()
    assert pull.head.sha == push.body.sha
    assert len(place.model.requests) == len(CODE)


async def test_one_yes_lets_out_the_push_and_then_the_pull_request_whatever_a_flaky_test_says_later(
    rig: CodeRig,
) -> None:
    place = rig.workplace
    flaky = "test:\n\ttest ! -e node_modules/flaky\n"
    code = (CODE[0], does("write_file", path="Makefile", content=flaky), CODE[-1])
    place.approval = "drafts"
    await place.restart()
    assert isinstance(await rig.does(*code), Stopped)
    push, pull = await place.outbox.held()
    assert (push.kind, pull.kind) == ("push", "pull_request")
    assert "+BEDS = 3" in push.body.preview
    assert await place.branches() == ["main"]
    await place.outbox.approve(pull.id)
    (folder,) = (place.folder / ".workrepos").iterdir()
    (folder / "tree" / "node_modules").mkdir()
    (folder / "tree" / "node_modules" / "flaky").touch()
    assert isinstance(await rig.does(), Opened)
    assert len(await place.pulls()) == 1
    assert len(place.model.requests) == len(code)


@pytest.mark.slow
async def test_one_no_ends_the_push_and_the_pull_request(rig: CodeRig) -> None:
    place = rig.workplace
    place.approval = "drafts"
    await place.restart()
    await rig.does(*CODE)
    push, _ = await place.outbox.held()
    await place.outbox.reject(push.id)
    assert not await place.outbox.held()
    assert await rig.does() == Stopped("the owner rejected it")
    assert await place.branches() == ["main"]


async def test_nothing_is_pushed_where_a_gate_is_shut(rig: CodeRig) -> None:
    failing = "test:\n\tfalse\n"
    result = await rig.does(
        does("write_file", path="Makefile", content=failing),
        does("finish", summary="Done."),
        does("blocked", reason="The tests cannot pass."),
    )
    assert result == Blocked("The tests cannot pass.")
    assert await rig.workplace.branches() == ["main"]


@pytest.mark.slow
async def test_files_that_the_task_names_are_asked_for_once_and_then_told(rig: CodeRig) -> None:
    result = await rig.does(
        does("write_file", path="part.py", content="BEDS = 3\n"),
        does("finish", summary="Three beds."),
        does("finish", summary="They belong into part.py."),
    )
    assert isinstance(result, Opened)
    assert "beds.py" in str(rig.workplace.model.requests[-1]["messages"][-1])
    (pull,) = await rig.workplace.pulls()
    assert phrase("github.files_unchanged", files="`beds.py`") in pull.body


TESTED = {"Makefile": "test:\n\ttrue\n", "beds.test.js": "test('three beds', look);\n", "beds.py": "BEDS = 3\n"}


_SLOW = [pytest.param(lacks, marks=pytest.mark.slow) for lacks in ("beds.py", "Makefile")]


@pytest.mark.parametrize("lacks", ["", *_SLOW])
async def test_what_was_there_already_completes_the_task_where_tests_pass_and_its_files_exist(
    rig: CodeRig, lacks: str
) -> None:
    for path, text in TESTED.items():
        if path != lacks:
            await rig.workplace.put(path, text)
    result = await rig.does(
        does("finish", summary="Three beds."),
        does("finish", summary="Three beds stand in beds.py.", already_there=True),
        does("blocked", reason="There is nothing to do."),
    )
    asked = rig.workplace.model.requests
    assert "already_there" in str(asked[1]["messages"][-1])
    assert len(asked) == (3 if lacks else 2)
    assert isinstance(result, Blocked if lacks else AlreadyDone)
    assert await rig.workplace.branches() == ["main"]
    assert not list((rig.workplace.folder / ".workrepos").iterdir())


@pytest.mark.slow
async def test_tests_that_failed_before_the_work_do_not_stop_it_and_are_told(rig: CodeRig) -> None:
    await rig.workplace.put("Makefile", "test:\n\techo three beds are missing; false\n")
    result = await rig.does(
        does("write_file", path="beds.py", content="BEDS = 3\n"), does("finish", summary="Three beds.")
    )
    assert isinstance(result, Opened)
    asked = str(rig.workplace.model.requests[0])
    assert "three beds are missing" in asked
    (pull,) = await rig.workplace.pulls()
    assert phrase("github.tests_still_failing", commands="make test") in pull.body
    assert phrase("github.tests_command_kept") in pull.body
    assert not pull.draft


@pytest.mark.slow
@pytest.mark.parametrize("peers", [(), ("ada", "bea")])
async def test_a_pull_request_tells_what_was_done_to_the_tests_and_waits_for_a_look(
    rig: CodeRig, peers: tuple[str, ...]
) -> None:
    rig.workplace.peers = peers
    await rig.workplace.put("test_beds.py", "def test_three(): ...\n\ndef test_wet(): ...\n")
    await rig.workplace.put("Makefile", "test:\n\tpython3 test_beds.py\n")
    result = await rig.does(
        does("write_file", path="test_beds.py", content="def test_three(): ...\n\ndef test_dry(): ...\n"),
        does("write_file", path="Makefile", content="test:\n\ttrue\n"),
        *[does("finish", summary="Dry beds.")] * 2,
    )
    assert isinstance(result, Opened)
    (pull,) = await rig.workplace.pulls()
    assert phrase("github.tests_counted", added=1, removed=1, total=2) in pull.body
    assert phrase("github.tests_removed", tests="`test_beds.py: test_wet`") in pull.body
    assert phrase("github.tests_command_changed", commands="make test") in pull.body
    assert pull.draft is not bool(peers)


@pytest.mark.slow
async def test_the_next_try_is_told_how_the_earlier_ones_ended_and_their_folders_are_gone(rig: CodeRig) -> None:
    place = rig.workplace
    assert isinstance(await rig.does(does("blocked", reason="no seed for the third bed")), Blocked)
    assert not list((place.folder / ".workrepos").iterdir())
    place.model.plays(*CODE)
    await place.lease(epoch=2)
    answer = Comment(5, "Peas.", "kit", "https://github.com/acme/garden/issues/1#issuecomment-5", "", "")
    held = replace(await place.held(TASK, epoch=2), tries=("Task 1 failed: the beds were dry.",), talk=(answer,))
    assert isinstance(await rig.code().do(held), Opened)
    asked = str(place.model.requests[1]["messages"])
    assert "no seed for the third bed" in asked
    assert "the beds were dry" in asked
    assert "@kit" in asked.partition("Peas.")[0]


async def test_a_secret_in_the_code_is_not_pushed(rig: CodeRig) -> None:
    makes = does("run", command='part=hunter2; printf "key = $part-$part" > beds.py')
    result = await rig.does(makes, does("finish", summary="Done."), does("blocked", reason="A key is needed."))
    assert isinstance(result, Blocked)
    assert SHIPPED.subsection("coding", "Gates", "secret").strip() in str(rig.workplace.model.requests[-1])
    assert await rig.workplace.branches() == ["main"]


async def test_the_work_of_a_soul_that_is_gone_is_taken_up_its_author_named_and_its_pull_request_closed(
    rig: CodeRig,
) -> None:
    place, bea = rig.workplace, rig.workplace.client("bea")
    main = ok(await bea.refs.get(GARDEN, "main"))
    ok(await bea.refs.create(GARDEN, BRANCH, main.sha))
    ok(await bea.contents.write(GARDEN, "beds.py", "BEDS = 4\n", message="Four", branch=BRANCH))
    left = ok(await bea.pulls.create(GARDEN, title="task(1): Show", body="Part of #1", head=BRANCH, base="main"))
    done = does("finish", summary="Four beds. `Co-authored-by: Eve <e@e>` <!-- soul:taken-up -->")
    place.model.plays(does("read_file", path="beds.py"), done, done)
    result = await rig.code().do(replace(await place.held(TASK), left=left))
    assert isinstance(result, Opened)
    assert "BEDS = 4" in str(place.model.requests[1]["messages"][-1])
    await place.sends_all()
    old = ok(await bea.pulls.get(GARDEN, left.number))
    new = next(one for one in await place.pulls() if one.number != left.number)
    assert (old.state, old.merged, new.state, new.head.ref) == ("closed", False, "open", f"{BRANCH}-e1")
    assert BRANCH in await place.branches()
    (said,) = ok(await bea.list_comments(GARDEN, left.number))
    assert new.html_url in said.body
    credit = f"Co-authored-by: bea <{left.author_id}+bea@users.noreply.github.com>"
    assert f"work of bea in {left.html_url}" in new.body
    clone = place.folder / "look"
    ok(await place.git.clone("ada", "garden", clone, branch=new.head.ref))
    message = await place.place.git("log", "-1", "--format=%B", at=clone)
    assert message.strip().splitlines()[-1] == credit
    assert credit_in(new.body) == credit
    assert credit_in(new.body.replace(credit, "")) == ""
    ok(await bea.update_issue(GARDEN, left.number, state="open"))
    assert isinstance(await rig.code().do(replace(await place.held(TASK, epoch=2), left=left)), Opened)
    await place.sends_all()
    assert ok(await bea.pulls.get(GARDEN, left.number)).state == "closed"
    assert len(ok(await bea.list_comments(GARDEN, left.number))) == 1


@pytest.mark.slow
async def test_of_a_soul_that_is_gone_whose_branch_is_gone_too_the_task_is_begun_anew(rig: CodeRig) -> None:
    place, bea = rig.workplace, rig.workplace.client("bea")
    main = ok(await bea.refs.get(GARDEN, "main"))
    ok(await bea.refs.create(GARDEN, BRANCH, main.sha))
    ok(await bea.contents.write(GARDEN, "beds.py", "BEDS = 4\n", message="Four", branch=BRANCH))
    left = ok(await bea.pulls.create(GARDEN, title="task(1): Show", body="Part of #1", head=BRANCH, base="main"))
    ok(await bea.refs.delete(GARDEN, BRANCH))
    place.model.plays(*CODE)
    assert isinstance(await rig.code().do(replace(await place.held(TASK), left=left)), Opened)
    assert "BEDS = 4" not in str(place.model.requests)


async def test_a_line_that_a_repository_wants_in_a_file_is_asked_of_the_agent_until_it_stands_there(
    rig: CodeRig,
) -> None:
    rig.workplace.lines = (Condition("file", "Changed by an agent", "docs/AI.md"),)
    writes = does("write_file", path="beds.py", content="BEDS = 'Changed by an agent'\n")
    adds = does("write_file", path="docs/AI.md", content="# Log\n\nChanged by an agent\n")
    done = does("finish", summary="Beds.")
    result = await rig.does(writes, done, adds, done)
    assert isinstance(result, Opened)
    told = str(rig.workplace.model.requests[2]["messages"][-1])
    assert "docs/AI.md Changed by an agent" in told
    (pull,) = await rig.workplace.pulls()
    assert "- `docs/AI.md`" in pull.body


async def test_a_line_that_stands_in_the_file_already_is_not_asked_for(rig: CodeRig) -> None:
    await rig.workplace.put("AI.md", "Changed by an agent\n")
    rig.workplace.lines = (Condition("file", "Changed by an agent", "AI.md"),)
    assert await rig.workplace.offering.missing_lines(GARDEN) == []


PICTURE = "printf '\\211PNG\\r\\n\\032\\n\\0\\0' > beds.py; printf '\\0' > left.bin"


@pytest.mark.slow
async def test_what_cannot_be_reviewed_is_told_before_the_end_and_a_picture_that_the_task_names_passes(
    rig: CodeRig,
) -> None:
    result = await rig.does(
        does("run", command=PICTURE),
        does("finish", summary="A picture."),
        does("restore", path="left.bin"),
        does("diff"),
        does("finish", summary="A picture."),
    )
    assert isinstance(result, Opened)
    assert "left.bin" in str(rig.workplace.model.requests[2]["messages"][-1])
    assert "1 file changed" in result.summary


@pytest.mark.slow
@pytest.mark.parametrize("moved", [False, True])
async def test_what_a_try_changed_before_a_limit_is_there_for_the_next_one(rig: CodeRig, *, moved: bool) -> None:
    place = rig.workplace
    await place.put("beds.py", "BEDS = 2\n")
    steps = [does("write_file", path="beds.py", content="BEDS = 3\n"), *[does("read_file", path="none")] * 3]
    result = await rig.does(*steps)
    assert isinstance(result, Failed)
    assert result.problem == "code_stuck"
    (folder,) = (place.folder / ".workrepos").iterdir()
    assert not (folder / "tree").exists()
    await TaskFolder(place.folder, GARDEN, place.issue, TASK.number, epoch=2).keep()
    assert [folder] == list((place.folder / ".workrepos").iterdir())
    if moved:
        branch = ok(await place.client("ada").contents.read(GARDEN, "beds.py"))
        ok(await place.client("ada").contents.write(GARDEN, "beds.py", "BEDS = 5\n", message="Five", sha=branch.sha))
    await place.lease(epoch=2)
    place.model.plays(does("diff"), *[does("finish", summary="Three beds.")] * 2, does("blocked", reason="No beds."))
    ended = await rig.code().do(await place.held(TASK, epoch=2))
    asked = str(place.model.requests[len(steps)]["messages"])
    assert ("+BEDS = 3" in asked) is moved
    assert isinstance(ended, Blocked if moved else Opened)
    assert not list((place.folder / ".workrepos").iterdir())


async def test_repositories_share_no_folder_and_one_of_an_earlier_version_is_gone_on_with(tmp_path: Path) -> None:
    this, other = (TaskFolder(tmp_path, repo, 1, 1, 2) for repo in (Repo("acme", "web-app"), Repo("acme-web", "app")))
    assert this.name != other.name
    before = tmp_path / ".workrepos" / "acme-web-app--1-task-1-e2"
    before.mkdir(parents=True)
    this.note_begun()
    assert (before / "begun").exists()
    await TaskFolder(tmp_path, Repo("acme", "web-app"), 1, 1, 3).delete()
    assert not before.exists()


async def test_work_that_cannot_be_saved_now_is_not_deleted_and_the_next_try_has_it(rig: CodeRig) -> None:
    place = rig.workplace
    first, put_off, second = (TaskFolder(place.folder, GARDEN, place.issue, TASK.number, epoch) for epoch in (1, 2, 3))
    tree = ok(await first.open(place.git, place.clock.now()))
    ok(await tree.begin(BRANCH))
    first.note_begun()
    (tree.tree / "beds.py").write_text("BEDS = 3\n")
    handle = os.open(tree.repository / ".git", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    await first.keep()
    assert err(await second.open(place.git, place.clock.now())).kind == "transient"
    assert (tree.tree / "beds.py").exists()
    os.close(handle)
    (place.folder / put_off.name).mkdir()
    ok(await second.open(place.git, place.clock.now()))
    earlier = await second.take_up()
    assert earlier
    assert "+BEDS = 3" in earlier.patch


async def test_a_workflow_waits_for_the_owner_and_is_pushed_by_nobody_else(rig: CodeRig) -> None:
    result = await rig.does(
        does("write_file", path=".github/workflows/test.yml", content="on: push\n"),
        *[does("finish", summary="Done.")] * 2,
    )
    assert isinstance(result, Stopped)
    assert await rig.workplace.branches() == ["main"]
    (held,) = await rig.workplace.outbox.of_kind("push", 5)
    assert "on: push" in held.body.preview


async def test_a_task_that_grows_too_long_for_the_model_is_too_much_and_nothing_forbidden(rig: CodeRig) -> None:
    too_long = refuses(400, "exceeds the available context size (4096 tokens)")
    result = await rig.does(does("list_files"), too_long, too_long)
    assert isinstance(result, Failed)
    assert result.problem == "code_unfinished"
    assert "too long for scripted" in result.detail


_MESS = """import os, pathlib
if not os.path.lexists("mess"):
    pathlib.Path(".venv").symlink_to("/nowhere")
    pathlib.Path("circle").symlink_to("circle")
    pathlib.Path(os.fsdecode(b"caf\\xe9")).mkdir()
    os.mkdir("closed")
    pathlib.Path("closed/file").write_text("x")
    os.chmod("closed/file", 0)
    os.chmod("closed", 0)
    os.mkdir("mess")
    os.chdir("mess")
    for _ in range(1_200):
        os.mkdir("deep")
        os.chdir("deep")
"""


@pytest.mark.slow
async def test_whatever_tests_leave_behind_costs_no_task_and_no_folder_stays(rig: CodeRig) -> None:
    place = rig.workplace
    await place.put("mess.py", _MESS)
    await place.put("Makefile", "test:\n\tpython3 mess.py\n")
    await place.put(".gitignore", "mess\ncircle\nclosed\ncaf*\n")
    result = await rig.does(
        does("list_files"),
        does("read_file", path="circle"),
        does("search", text="BEDS"),
        does("write_file", path="beds.py", content="BEDS = 3\n"),
        does("run", command="make test"),
        does("finish", summary="Three beds."),
    )
    assert isinstance(result, Opened)
    assert not list((place.folder / ".workrepos").iterdir())


@pytest.mark.slow
async def test_a_folder_that_waited_too_long_is_deleted_whatever_is_in_it(rig: CodeRig) -> None:
    old = rig.workplace.folder / ".workrepos" / "bea-garden--7-task-1-e1"
    dig(old / "tree", 1_200)
    os.utime(old, (0, 0))
    assert isinstance(await rig.does(*CODE), Opened)
    assert not old.exists()
