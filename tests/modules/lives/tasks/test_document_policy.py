"""Proves which tasks ask for documents, and on which branch one is worked on.

A model's text is saved only if it is a document and says nothing that it should not. A whole SOUL claims a task that
asks for a document, writes it, and offers it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.github.types import PullBranch, PullRequest
from modules.lives.tasks.documents import (
    MOST_CHARS,
    Requirements,
    document_in,
    is_document_task,
    judge_document,
    missing_words,
)
from modules.lives.tasks.offering import choose_branch
from modules.lives.tasks.types import AlreadyDone, HeldTask, WorkResult
from modules.services.plans.types import Plan, Task
from modules.services.workspaces.trust import TrustedAccounts
from soul.composition.wiring.tasks import build_document_work
from tests.adapters.results import ok
from tests.cpu_time import takes_less
from tests.modules.lives.tasks.site import SITE, Work, site_with_plan
from tests.modules.lives.tasks.workplace import DOCUMENT, GOAL
from tests.running_town import RunningTown
from tests.shipped_skills import phrase
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from tests.trusting import account
from town.model.types import Completion

TASK = Task(3, "Write the guide", files=("docs/guide.md",))
NAME, OTHER = "task-3-write-the-guide", "task-3-write-the-guide-e2"
PULL = PullRequest(
    number=9,
    title="task(3): Write the guide",
    body="Part of #12",
    state="open",
    author="ada",
    head=PullBranch(NAME, "a" * 40, "ada/garden", 1),
    base=PullBranch("main", "b" * 40, "ada/garden", 1),
    html_url="https://github.com/ada/garden/pull/9",
    created_at="2026-01-01T00:00:00Z",
    updated_at="2026-01-01T00:00:00Z",
    author_id=account("ada").id,
)
TRUSTED = TrustedAccounts(account("ada"), peers=frozenset({account("bea")}))


MARK = "todo".upper()


def by(pull: PullRequest, login: str) -> PullRequest:
    return replace(pull, author=login, author_id=account(login).id)


MERGED = replace(PULL, state="closed", merged_at="2026-01-02T00:00:00Z")
CLOSED = replace(PULL, state="closed")
FORK = PullBranch(NAME, "a" * 40, "bea/garden", 2)


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        (("SCENARIOS.md",), True),
        (("LIL-INTDEV-AGENTS.md", "docs/How it works.MD"), True),
        ((), False),
        (("SCENARIOS.md", "page.ts"), False),
        (("a.md", "b.md", "c.md", "d.md"), False),
        (("../SCENARIOS.md",), False),
        (("/SCENARIOS.md",), False),
        ((".github/workflows/run.md",), False),
        (("docs//guide.md",), False),
        (("docs/",), False),
        (("`guide`.md",), False),
        (("guide\u202e.md",), False),
        (("x" * 120 + ".md",), False),
        ((".md",), False),
    ],
)
def test_a_task_that_asks_for_documents(files: tuple[str, ...], is_one: bool) -> None:  # noqa: FBT001 - from the table
    assert is_document_task(replace(TASK, files=files)) is is_one


@pytest.mark.parametrize(
    ("branches", "own", "pulls", "code", "branch"),
    [
        ((), (), (), "create", NAME),
        ((NAME,), (NAME,), (), "go_on", NAME),
        ((NAME,), (), (), "create", OTHER),
        ((NAME, OTHER), (OTHER,), (), "go_on", OTHER),
        ((NAME, OTHER), (), (), "left", ""),
        ((NAME,), (NAME,), (PULL,), "opened", NAME),
        ((NAME,), (NAME,), (by(PULL, "ADA"),), "opened", NAME),
        ((NAME,), (), (by(PULL, "bea"),), "left", ""),
        ((NAME,), (NAME,), (by(PULL, "mallory"),), "go_on", NAME),
        ((), (), (by(MERGED, "mallory"),), "create", NAME),
        ((), (), (MERGED,), "left", ""),
        ((), (), (replace(by(PULL, "bea"), head=FORK),), "create", NAME),
        ((), (), (replace(MERGED, head=PullBranch(NAME, "a" * 40)),), "create", NAME),
        ((NAME,), (NAME,), (CLOSED,), "create", OTHER),
        ((), (), (CLOSED,), "create", NAME),
        ((NAME,), (), (replace(PULL, body="Part of #121"),), "create", OTHER),
        ((), (), (replace(MERGED, body="Part of #7"),), "create", NAME),
        ((NAME,), (), (replace(PULL, head=PullBranch("task-31-x", "a" * 40, "ada/garden", 1)),), "create", OTHER),
    ],
)
def test_where_a_task_is_worked_on(
    branches: tuple[str, ...], own: tuple[str, ...], pulls: tuple[PullRequest, ...], code: str, branch: str
) -> None:
    choice = choose_branch(TASK, 12, 2, branches=branches, own=own, pulls=pulls, trusted=TRUSTED)
    assert (choice.code, choice.branch) == (code, branch)
    assert (choice.pull is not None) == (code == "opened")
    assert bool(choice.reason) == (code == "left")


TOLD = "The goal is shown to you here, and what the others wrote stands behind it in a frame."
REQUIREMENTS = Requirements(
    GOAL, given="See https://example.org/beds.", before="Old: https://example.org/old", instructions=TOLD
)
LINK = "\nMore at https://example.org/beds, and at [the old page](https://example.org/old).\n"


def problem_of(text: str, required: Requirements = REQUIREMENTS) -> str | None:
    return judge_document(text, required, lambda said: "hunter2" in said).problem


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        DOCUMENT + LINK,
        DOCUMENT + "\n```html\n<p>beds</p>\n```\n",
        DOCUMENT + "\nThe page shows `<p>` and `{{name}}`, and 3 < 4.\n",
        DOCUMENT + "\n- [ ] look\n- [x] water the add-on bed\n",
        DOCUMENT + "\nA todo list shows the beds to be added, and what is to be decided.\n",
        f"{DOCUMENT}\n```yaml\nkey: ${{{{ secrets.KEY }}}}  # {MARK}\n```\n",
        DOCUMENT + "".join(f"\n- The visitor opens the page and sees bed {n}.\n" for n in range(9)),
    ],
)
def test_a_document(text: str) -> None:
    assert problem_of(text) is None


def test_a_document_in_a_script_of_few_signs_may_be_short() -> None:
    text = "# 花壇\n\n## 晴れの日\n\n訪問者は今日どの花壇に水が必要かを一目で見る。乾いた花壇は赤い。\n"
    text += "\n## 雨の日\n\n雨が降ると、どの花壇にも水は要らないと分かる。緑の花壇は湿っている。\n"
    assert problem_of(text, Requirements("花壇")) is None


@pytest.mark.parametrize(
    "around", ["{}から", "{}、", "\uff08{}\uff09", "「{}」", "„{}“", "{}،", "{}/", "{}。", "{}에서", "**{}**", "|{}|"]
)
def test_a_link_ends_where_its_language_ends_it(around: str) -> None:
    text = around.format("https://example.org/beds")
    assert problem_of(f"{DOCUMENT}\n{text}\n") is None
    assert problem_of(f"{DOCUMENT}\n{text}\n", Requirements(GOAL, given=text)) is None
    assert problem_of(f"{DOCUMENT}\n{around.format('https://example.org/beds-2')}\n") == "Link"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Empty"),
        ("# Beds\n\n## Dry\n\nWater.\n\n## Wet\n\nNothing.\n", "Empty"),
        ("# Scenarios\n\n## One\n\n## Two\n", "Empty"),
        (DOCUMENT + "word " * (MOST_CHARS // 5), "Too Long"),
        (DOCUMENT.replace("# Scenarios", "Scenarios", 1), "No Headings"),
        (DOCUMENT.replace("## A wet day", "A wet day"), "No Headings"),
        (DOCUMENT + "\n# Another title\n", "No Headings"),
        (DOCUMENT + "\n```ts\nlet beds\n", "Open Code"),
        (DOCUMENT + "\n<script src=x></script>\n", "Markup"),
        (DOCUMENT + "\n<!-- unseen -->\n", "Markup"),
        (DOCUMENT + "\nTBD\n", "Gap"),
        (f"{DOCUMENT}\n- {MARK} draw the beds\n", "Gap"),
        (DOCUMENT + "\n- todo: draw the beds\n", "Gap"),
        (DOCUMENT + "\nOwner: to be decided\n", "Gap"),
        (DOCUMENT + "\n*To be written.*\n", "Gap"),
        (DOCUMENT + "\nAsk [your name] for the key.\n", "Gap"),
        (DOCUMENT + "\nHello {{name}}.\n", "Gap"),
        (DOCUMENT + "\nSee https://example.net/.\n", "Link"),
        (DOCUMENT + "\nSee https://example.org/bedsü.\n", "Link"),
        (DOCUMENT + f"\n{TOLD}\n", "Instructions"),
        (DOCUMENT + "\nThe key is hunter2.\n", "Secret"),
        (DOCUMENT + "\n- The page will not show the weather.\n" * 5, "Repeats"),
        (DOCUMENT.replace(GOAL, "We like it.").replace("water", "tea").replace("bed", "cup"), "Goal"),
    ],
)
def test_what_is_no_document(text: str, problem: str) -> None:
    assert problem_of(text) == problem


def test_what_says_the_same_as_before_is_no_work() -> None:
    assert problem_of(DOCUMENT, Requirements(GOAL, stands=DOCUMENT.replace("\n\n", "\n\n\n"))) == "Unchanged"


def test_words_and_tags_that_the_model_was_given_are_no_gap_and_no_markup_and_a_comment_never_passes() -> None:
    text, given = f"{DOCUMENT}\nA {MARK} list with <video>.\n", "A Todo list with <VIDEO> <!-- unseen -->"
    assert problem_of(text) == "Gap"
    assert problem_of(text, Requirements(GOAL, given=given)) is None
    assert problem_of(f"{text}\n<!-- unseen -->\n", Requirements(GOAL, given=given)) == "Markup"


def test_the_words_of_the_goal_that_are_missing_are_told() -> None:
    missing = ("visitors", "see", "beds", "need", "water", "today")
    assert judge_document(DOCUMENT, Requirements("Visiting the beds"), lambda _: False).problem is None
    assert set(missing_words(GOAL, "Tea.")) >= set(missing) - {"see"}
    assert missing_words("", "Tea.") == ()
    for goal in ("The tide-table can be used.", "A neighbour's gate/door.", "naïve co-op: e-mail"):
        assert missing_words(goal, f"# About\n\n{goal}") == ()
    assert missing_words("庭の水やりを一目で見る", "# 庭\n\n庭の水やりを一目で見る") == ()


@pytest.mark.parametrize(
    "answer",
    [
        DOCUMENT,
        f"```markdown\n{DOCUMENT}```",
        f"Here is the document:\n\n{DOCUMENT}",
        f"Sure.\n\n```md\n{DOCUMENT}```\n",
        DOCUMENT.replace("\n", "  \n"),
        f"\ufeff{DOCUMENT}\n\n",
        f"```markdown\n<think></think>{DOCUMENT}```",
    ],
)
def test_what_stands_around_the_document_is_taken_off(answer: str) -> None:
    assert document_in(answer) == DOCUMENT


@pytest.mark.perf
@pytest.mark.parametrize("unit", ["<a ", "[insert ", "# ", "`", "https://", "```\n", "- a b c d e\n", "{{", "!", ".)"])
def test_the_cost_grows_with_the_length(unit: str) -> None:
    text = document_in(unit * 4_000)
    assert takes_less(1.0, lambda: judge_document(text, REQUIREMENTS, lambda _: False), runs=3)


PLAN = Plan(
    "A counter",
    goal="Visitors see which beds need water.",
    tasks=(Task(1, "Count", files=("count.ts",)), Task(2, "Create SCENARIOS.md", files=("SCENARIOS.md",))),
)


@needs_git
async def test_a_claimed_document_is_offered_told_of_on_the_plan_and_kept_until_the_merge(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = lambda _: Completion(text=DOCUMENT)
    async with site_with_plan(town_github, PLAN) as site:
        work = build_document_work(site.services)
        await site.cycle(work)
        assert (await site.row(2)).outcome == "opened"
        (pull,) = ok(await site.services.github.pulls.list(SITE))
        assert (pull.title, pull.head.ref) == ("task(2): Create SCENARIOS.md", "task-2-create-scenariosmd")
        read = await site.services.github.contents.read(SITE, "SCENARIOS.md", ref=pull.head.ref)
        assert ok(read).text == DOCUMENT
        assert await site.task(2) == ("in_progress", "rowan")
        told = (await site.comments())[-1]
        assert pull.html_url in told
        assert ("Completed" in told, "complete" in told, '"event":"opened"' in told) == (False, False, True)
        assert (await site.cycle(work)).notes == ()
        assert len(ok(await site.services.github.pulls.list(SITE, state="all"))) == 1
        ok(await site.services.github.pulls.merge(SITE, pull.number))
        site.clock.ahead += 600
        await site.cycle(work)
        await site.cycle(work)
        assert await site.task(2) == ("completed", None)
        assert len(await site.comments()) == 1, "GitHub itself tells of the merge"


async def test_a_document_that_stands_is_left_to_the_work_on_code(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async def edit(_: HeldTask) -> WorkResult:
        return AlreadyDone("It says so.")

    task = Task(1, "Add an example to the README", files=("README.md",))
    async with site_with_plan(town_github, Plan("An example", goal="g", tasks=(task,))) as site:
        documents, code = build_document_work(site.services), Work(edit, frozenset({1}))
        await site.cycle(documents)
        assert (await site.row(1)).outcome == "no-worker"
        site.clock.ahead += 3601
        await site.cycle(documents, code)
        assert code.asked == [1]
        assert await site.task(1) == ("completed", None)


@pytest.mark.slow
async def test_what_is_wrong_with_a_document_that_cannot_be_offered_is_told_in_words(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = lambda _: Completion(text="# Scenarios")
    async with site_with_plan(town_github, PLAN) as site:
        await site.cycle(build_document_work(site.services))
        told = (await site.comments())[-1].partition("<!--")[0]
        assert all(words in told for words in ("`SCENARIOS.md`", phrase("document_problem.empty")))
        assert not any(code in told for code in ("Empty", "document_unfit", "Failed("))
