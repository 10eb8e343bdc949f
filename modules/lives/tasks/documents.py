"""Decides which tasks ask for documents, has the model write them, checks them, offers them as a pull request.

A faulty first try is sent back once with its faults.
"""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import regex

from adapters.github.types import Repo
from common.errors import Transient
from common.facts import QuestionFacts, TurnFacts
from common.result import Err, Ok
from common.text.echo import is_loop, plain_words, tokenize_with_stemming
from common.text.handles import UNSPACED
from common.text.markdown import is_meaningful, is_wrapping, outline, unwrapped
from common.text.patterns import lazy_regex
from common.text.strings import both_ends
from common.text.untrusted import clean, one_line
from modules.lives.tasks.offering import Offering, TaskActs, TaskStopped, read
from modules.lives.tasks.types import UNCLAIMED, Deferred, Failed, HeldTask, Opened, Stopped, TaskWorker, WorkResult
from modules.runtime.llm.dialect import ChatResult, Message
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.scheduler import Attention
from modules.services.coding.trajectory import Trajectories, step_of
from modules.services.outbox.github_bodies import ContentsBody, RefBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.types import ProposedAction
from modules.services.plans.types import AGENTS_PAGE, SCENARIOS_PAGE, FoundPlan, Plan, Task
from modules.services.rituals.policy import DECISION_KIND, DECISION_TASK
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import Disposition, Handler, WorkItem

MOST_DOCUMENTS = 3
"""How many documents one task may ask for."""

_PATH_CHARS = 120
_NAME = re.compile(r"[\w-][\w. -]{0,99}")


def is_document_task(task: Task) -> bool:
    """Return whether a task names only Markdown documents, at least one and at most `MOST_DOCUMENTS`."""
    return 0 < len(task.files) <= MOST_DOCUMENTS and all(map(is_document, task.files))


def is_page(path: str) -> bool:
    """Return whether a path is that of a workspace page, which is rewritten if it exists already."""
    return path.rpartition("/")[2].lower() in {AGENTS_PAGE.lower(), SCENARIOS_PAGE.lower()}


def is_document(path: str) -> bool:
    """Return whether a path from the root is that of a Markdown document, in no hidden folder, in plain characters."""
    parts = path.split("/")
    return len(path) <= _PATH_CHARS and path.lower().endswith(".md") and all(_NAME.fullmatch(part) for part in parts)


DocumentProblem = Literal[
    "Empty",
    "Too Long",
    "Cut Off",
    "No Headings",
    "Open Code",
    "Markup",
    "Repeats",
    "Gap",
    "Link",
    "Instructions",
    "Goal",
    "Unchanged",
    "Secret",
]
"""A problem of a document that a model wrote: a subsection of `Problems` in the skill `task-document`."""
MOST_CHARS = 12_000
"""The most characters of a document that the model writes, and of one that it rewrites."""

_LEAST_BYTES = 200
_LEAST_PARTS = 2
_LEAST_GOAL_SHARE = 0.5
_MOST_WORDS_TOLD = 8
_RUN = 10
_REMARK_CHARS = 300
_TITLE, _PART = 1, 2
_TICKS = re.compile(r"`[^`\n]{1,200}`")
_HTML = re.compile(r"<(?:/?[a-z][a-z0-9-]{0,20}(?:[ \t][^<>\n]{0,200})?/?>|!--)", re.IGNORECASE)
_LINK = lazy_regex(rf"(?i:https?://|www\.)(?:[^\s\p{{P}}\p{{S}}{UNSPACED}]|[!#-&*+,./:;=?@\\^_{{}}~-]){{1,300}}")
"""Matches a link, which signs of scripts without spaces and punctuation outside of ASCII end."""
_GAP = re.compile(
    r"(?-i:\bTO-?DO\b)|^[ \t>#*-]{0,8}to-?do[ \t]*(?=:|$)|\b(?:tbd|tba|fixme|lorem ipsum)\b"
    r"|(?:^[ \t>#*(-]{0,8}|: |\()to be (?:added|decided|defined|determined|filled in|written)\b"
    r"|\[(?:insert|your|add|describe|name of|to be|link|fill|placeholder)\b[^\]\n]{0,80}\](?!\()"
    r"|<(?:insert|your|add|name of|placeholder)\b[^<>\n]{0,80}>"
    r"|\{\{|\}\}",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements that a document has to meet.

    `goal` is that of the plan; `given` is all untrusted text that the model was shown, whose links, tags and words it
    may repeat; `before` is the document to start from, and `stands` the one that has to change, each "" if there is
    none; `instructions` are our own words to the model.
    """

    goal: str
    given: str = ""
    before: str = ""
    stands: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class DocumentCheck:
    """The result of checking a document: its problem, if any, and the words of the goal that it lacks."""

    problem: DocumentProblem | None = None
    missing: tuple[str, ...] = ()


def document_in(answer: str) -> str:
    """Return the document in a model's answer, cleaned and ready to be saved.

    A code block around all of it is removed, and so is a short remark before the title.
    """
    lines = clean(answer, is_ours=True).split("\n")
    begin = next((place for place, line in enumerate(lines) if line.startswith("# ") or is_wrapping(line)), 0)
    if sum(map(len, lines[:begin])) <= _REMARK_CHARS:
        lines = unwrapped(lines[begin:])
    return clean("\n".join(line.rstrip() for line in lines), is_ours=True) + "\n"


def judge_document(text: str, required: Requirements, finds_secret: Callable[[str], bool]) -> DocumentCheck:
    """Return the first problem of a document, which is in the form that `document_in` returns."""
    failed = next((problem for problem, fails in _checks(text, required, finds_secret) if fails()), None)
    return DocumentCheck(failed, missing_words(required.goal, text) if failed == "Goal" else ())


def missing_words(goal: str, text: str) -> tuple[str, ...]:
    """Return the significant words of a goal that a text lacks in any form; none if it has half of them."""
    # NOTE(self): word by word on both sides, because a whole text loses the hyphens within its words.
    said = {stem for word in plain_words(text) for stem in tokenize_with_stemming(word)}
    told = {stem: word for word in plain_words(goal) for stem in tokenize_with_stemming(word)}
    missing = [word for stem, word in told.items() if stem not in said]
    enough = len(told) - len(missing) >= len(told) * _LEAST_GOAL_SHARE
    return () if enough else tuple(missing[:_MOST_WORDS_TOLD])


def _checks(
    text: str, required: Requirements, finds_secret: Callable[[str], bool]
) -> Iterable[tuple[DocumentProblem, Callable[[], bool]]]:
    prose, given = _without_code(_TICKS.sub(" ", text)), f"{required.given}\n{required.before}"
    return (
        ("Secret", lambda: finds_secret(text)),
        ("Empty", lambda: len(text.encode()) < _LEAST_BYTES or not is_meaningful(text)),
        ("Too Long", lambda: len(text) > MOST_CHARS),
        ("Open Code", lambda: bool(outline(text.split("\n")).open_fence)),
        ("No Headings", lambda: not _is_divided(text)),
        ("Repeats", lambda: is_loop(text)),
        ("Gap", lambda: any(gap not in given.lower() for gap in _all(_GAP, prose))),
        ("Markup", lambda: not _all(_HTML, prose) <= _all(_HTML, given) - {"<!--"}),
        ("Link", lambda: not _all(_LINK, text) <= _all(_LINK, given)),
        ("Instructions", lambda: not _runs(text).isdisjoint(_runs(required.instructions))),
        ("Unchanged", lambda: plain_words(text) == plain_words(required.stands)),
        ("Goal", lambda: bool(missing_words(required.goal, text))),
    )


def _is_divided(text: str) -> bool:
    """Return whether a text begins with its only title and has parts."""
    headings = outline(text.split("\n")).headings
    titles = [one.line for one in headings if one.level == _TITLE]
    return titles == [0] and sum(one.level == _PART and bool(one.text) for one in headings) >= _LEAST_PARTS


def _without_code(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line for line, is_code in zip(lines, outline(lines).in_code, strict=True) if not is_code)


def _all(pattern: re.Pattern[str] | regex.Pattern[str], text: str) -> set[str]:
    return {found[0].lstrip(" \t>#*(:-").rstrip(".,;:!?*_/").lower() for found in pattern.finditer(text)}


def _runs(text: str) -> set[tuple[str, ...]]:
    words = plain_words(text)
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}


SKILL = "task-document"

_TOKENS, _WORDS = 1_500, 400
_CHARS_OF_TOKEN, _CHARS_OF_WORD = 2, 6
"""How few characters a token and a word may have, so that a long document can be written again as long as it is."""
_TEMPERATURES = (0.2, 0.6)
_LINE_CHARS, _GOAL_CHARS, _TEXT_CHARS = 200, 600, 2_000
_MOST_TASKS = 20
_NOT_SHOWN: frozenset[DocumentProblem] = frozenset({"Secret", "Too Long", "Cut Off", "Empty", "Goal", "Repeats"})
_FORMS = {AGENTS_PAGE.lower(): "Agents Page", SCENARIOS_PAGE.lower(): "Scenarios Page"}


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """A document to write: its path, its task, the files around it, and the text to start from ("" if there is none).

    `url` is that of the issue that holds the plan; `stands` is the text of the document that has to change.
    """

    repo: Repo
    url: str
    plan: Plan
    task: Task
    path: str
    files: tuple[str, ...] = ()
    before: str = ""
    stands: str = ""


def _told_of(request: DocumentRequest, required: Requirements) -> dict[str, tuple[str, ...]]:
    return {"path": (request.path,), "goal": (required.goal,), "task": (request.task.title,)}


@dataclass(frozen=True, slots=True)
class Written:
    """A document, or the problem of the second try, in which case `text` is ""."""

    text: str
    problem: DocumentProblem | None = None


@dataclass(frozen=True, slots=True)
class DocumentWriter:
    """Asks the model. `finds_secret` says whether a text holds one; `rng` draws the boundaries of untrusted text.

    `profile` returns the SOUL's public profile.
    """

    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    finds_secret: Callable[[str], bool]
    profile: Callable[[], Awaitable[str]]

    async def write(self, request: DocumentRequest, keep: Callable[[ChatResult], Awaitable[None]]) -> Written:
        """Return the document, or the problem of the second try. `keep` receives each answer.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        required = Requirements(
            request.plan.goal or request.plan.title,
            _given(request),
            request.before,
            request.stands,
            self._instructions(),
        )
        asked = self._asked(request)
        messages, verdict = [Message("user", asked)], DocumentCheck()
        for temperature in _TEMPERATURES:
            result = await self._ask(request, messages, required, temperature)
            await keep(result)
            text, verdict = self._judged(result, required)
            if verdict.problem is None:
                return Written(text)
            messages = self._sent_back(asked, text, verdict, _most_words(request.before))
        return Written("", verdict.problem)

    async def _ask(
        self, request: DocumentRequest, messages: Sequence[Message], required: Requirements, temperature: float
    ) -> ChatResult:
        system = self.skills.render(SKILL, "System Prompt", count=_most_words(required.before))
        return await self.gateway.chat_with_tools(
            messages,
            system=f"{system}\n\n{await self.profile()}".rstrip(),
            max_tokens=max(_TOKENS, len(required.before) // _CHARS_OF_TOKEN),
            temperature=temperature,
            purpose=SKILL,
            importance="commitment",
            facts=TurnFacts(QuestionFacts(SKILL, _told_of(request, required))),
        )

    def _judged(self, result: ChatResult, required: Requirements) -> tuple[str, DocumentCheck]:
        text = document_in(result.text)
        if result.stop_reason == "max_tokens":
            return text, DocumentCheck("Cut Off")
        return text, judge_document(text, required, self.finds_secret)

    def _sent_back(self, asked: str, text: str, verdict: DocumentCheck, count: int) -> list[Message]:
        """Return the messages that name the problem of the first try, and show that try if it helps the model."""
        problem = verdict.problem or ""
        words = self.skills.render(SKILL, "Problems", problem, words=", ".join(verdict.missing), count=count).strip()
        again = self.skills.render(SKILL, "Once More", problem=words)
        if problem in _NOT_SHOWN:
            return [Message("user", f"{asked}\n\n{again}")]
        return [Message("user", asked), Message("assistant", text), Message("user", again)]

    def _asked(self, request: DocumentRequest) -> str:
        framer = Framer(self.skills, self.rng)

        def framed(text: str) -> str:
            return framer.frame("reading", author=request.repo.full_name, uri=request.url, text=text)

        before = request.before.strip()
        standing = self.skills.render(SKILL, "Standing", document=framed(before)) if before else ""
        form = _FORMS.get(request.path.rpartition("/")[2].lower(), "Other")
        return self.skills.render(
            SKILL,
            "Message",
            path=one_line(request.path, _LINE_CHARS),
            repo=request.repo.full_name,
            form=self.skills.render(SKILL, "Forms", form, path=one_line(request.path, _LINE_CHARS)),
            plan=framed(_plan_text(request)),
            task=framed(_task_text(request.task)),
            goal=framed(one_line(request.plan.goal or request.plan.title, _GOAL_CHARS)),
            standing=standing or self.skills.section(SKILL, "No Document"),
        )

    def _instructions(self) -> str:
        """Return our own words to the model, as they are in the skill."""
        own = ("System Prompt", "Message", "Once More", "Standing", "No Document")
        return "\n".join(self.skills.section(SKILL, name) for name in own)


def _most_words(before: str) -> int:
    return max(_WORDS, len(before) // _CHARS_OF_WORD)


def _given(request: DocumentRequest) -> str:
    return f"{_plan_text(request)}\n{_task_text(request.task)}\n{request.url} {request.url.rpartition('/issues/')[0]}"


def _plan_text(request: DocumentRequest) -> str:
    """Return the plan as the model is shown it: its goal, its tasks, and the files in the repository."""
    plan = request.plan
    tasks = [_task_line(task) for task in plan.tasks if not is_document_task(task)][:_MOST_TASKS]
    files = [f"- {one_line(path, _LINE_CHARS)}" for path in request.files]
    parts = (
        f"Title: {one_line(plan.title, _LINE_CHARS)}",
        f"Goal: {one_line(plan.goal, _GOAL_CHARS)}",
        f"Context:\n{both_ends(clean(plan.context), _TEXT_CHARS)}" if plan.context.strip() else "",
        "Tasks of the plan:\n" + ("\n".join(tasks) or "none but documents"),
        "Files in the repository:\n" + ("\n".join(files) or "none"),
    )
    return "\n\n".join(filter(None, parts))


def _task_line(task: Task) -> str:
    files = f" ({one_line(', '.join(task.files), _LINE_CHARS)})" if task.files else ""
    return f"- {one_line(task.title, _LINE_CHARS)}{files}"


def _task_text(task: Task) -> str:
    return f"{one_line(task.title, _LINE_CHARS)}\n\n{both_ends(clean(task.description), _TEXT_CHARS)}"


NAME = "task-document"

_MOST_FILES, _MOST_FOLDERS = 60, 3


class DocumentActs(TaskActs):
    """The acts for one task that asks for documents, under one claim."""

    __slots__ = ()

    @property
    def files(self) -> str:
        """The documents, as a Markdown list."""
        return "\n".join(f"- `{path}`" for path in self.task.files)

    def branch(self, name: str, sha: str) -> ProposedAction:
        """Return the creation of the branch `name` at the commit `sha`."""
        ref = RefBody(**for_workspace(self.repo), action="create", branch=name, sha=sha, own_commit=True)
        return self.action("branch", ref)

    def document(self, path: str, text: str, *, branch: str, sha: str) -> ProposedAction:
        """Return the write of a document to the branch; `sha` is that of the file that it replaces, "" if it is new."""
        at = for_workspace(self.repo)
        message = "\n\n".join(filter(None, (self.title, self.credit)))
        contents = ContentsBody(**at, path=path, content=text, message=message, branch=branch, sha=sha)
        return self.action(f"file:{path}", contents)


async def offer_documents(
    offering: Offering, acts: DocumentActs, body: str, write: Callable[[str, str], Awaitable[object]]
) -> Opened:
    """Open the pull request with all documents, and return it; `write` writes one path on one branch.

    Raises `TaskStopped`.
    """
    place = await offering.place(acts)
    if place.pull is not None:
        return await offering.stands(acts, place.pull, acts.files)
    if place.begun is not None:
        await offering.settled(place.begun)
    elif place.is_new:
        head = await offering.head(acts, place.repository)
        await offering.done(acts.branch(place.branch, head))
    for path in acts.task.files:
        await write(path, place.branch)
    told = body + offering.taken_up(acts)
    return await offering.opened(acts, acts.pull_request(head=place.branch, base=place.base, body=told), acts.files)


@dataclass(frozen=True, slots=True)
class DocumentWork(TaskWorker):
    """The worker for tasks whose files are new Markdown documents or pages of a workspace.

    Attributes:
        offering: makes the branch, the pull request and the review requests.
        writer: asks the model for a document, without tools.
        attention: held while the model writes, as a SOUL does one thing at a time.
        store: keeps what each answer of the model cost.

    """

    offering: Offering
    writer: DocumentWriter
    attention: Attention
    store: Trajectories

    def can_do(self, task: Task) -> bool:
        """Return whether a task asks for documents and nothing else."""
        return is_document_task(task)

    async def fits(self, repo: Repo, task: Task) -> bool:
        """Return whether none of the documents exists yet, pages of a workspace aside. Raises `Transient`.

        If the repository requires a line in another file with each pull request, the result is False.
        """
        if await self.offering.missing_lines(repo):
            return False
        for path in task.files:
            if is_page(path):
                continue
            found = await self.offering.github.contents.read(repo, path)
            if isinstance(found, Ok) or found.kind == "invalid":
                return False
            if found.kind not in {"not_found", "conflict"}:
                raise Transient(found.error, retry_after=found.retry_after)
        return True

    async def do(self, work: HeldTask) -> WorkResult:
        """Do the rest of the task, up to its pull request. A `Lost` task was left as it is.

        Waits for acts that are on their way, for as long as the caller allows.

        Raises:
            SoulError: the model cannot be asked, or the process must end.

        """
        try:
            return await self._do(DocumentActs(work))
        except TaskStopped as ended:
            return ended.result

    async def _do(self, acts: DocumentActs) -> WorkResult:
        body = self.offering.phrase("github.pull_request", **acts.told, count=len(acts.task.files), files=acts.files)
        return await offer_documents(self.offering, acts, body, partial(self._write, acts))

    async def _write(self, acts: DocumentActs, path: str, branch: str) -> None:
        """Write the document on the branch, unless one that the model wrote is there or on its way already."""
        if row := (await self.offering.outbox.standing("contents", acts.name(f"file:{path}"))).active:
            await self.offering.settled(row)
            return
        page = await self.offering.github.contents.read(acts.repo, path, ref=branch, max_chars=MOST_CHARS)
        if isinstance(page, Err) and page.kind == "invalid":
            raise TaskStopped(Failed("document_unreadable", page.error, about=path))
        before = None if isinstance(page, Err) and page.kind == "not_found" else read(page)
        if before is not None and before.truncated:
            detail = f"{path} has more than {MOST_CHARS:,} characters"
            raise TaskStopped(Failed("document_too_long", detail, about=path))
        text = stands = before.text if before else ""
        sha = before.sha if before else ""
        made = [one.body for one in await self.offering.outbox.done(acts.cause, "contents")]
        ours = {(one.path, one.branch, one.content) for one in made if isinstance(one, ContentsBody)}
        if (path, branch, stands) in ours:  # it was written under an earlier claim
            return
        if left := acts.held.left:
            at = left.head.ref
            begun = (await self.offering.github.contents.read(acts.repo, path, ref=at, max_chars=MOST_CHARS)).or_else(
                None
            )
            text = begun.text if begun else text
        files = await self._files(acts, branch)
        found = acts.held.found
        request = DocumentRequest(acts.repo, found.issue.html_url, found.plan, acts.task, path, files, text, stands)
        async with self.attention.take(NAME):
            written = await self.writer.write(request, partial(self._keep, acts))
        if not written.text:
            lacks = (written.problem or "").lower().replace(" ", "_")
            raise TaskStopped(Failed("document_unfit", f"{path}: {written.problem}", about=path, lacks=lacks))
        await self.offering.done(acts.document(path, written.text, branch=branch, sha=sha))

    async def _keep(self, acts: DocumentActs, result: ChatResult) -> None:
        """Store an answer of the model with the steps of the task, to account for its cost."""
        key, epoch = f"{acts.cause}/documents", acts.held.epoch
        number = len(await self.store.steps(key, epoch)) + 1
        await self.store.put(key, epoch, step_of(result, number, self.offering.clock.now(), ()))

    async def _files(self, acts: DocumentActs, branch: str) -> tuple[str, ...]:
        """Return the paths in the root and in a few folders, at most `_MOST_FILES`."""
        root = read(await self.offering.github.contents.list(acts.repo, ref=branch))
        entries = list(root)
        folders = [one for one in root if one.type == "dir" and not one.name.startswith(".")]
        for folder in folders[:_MOST_FOLDERS]:
            inside = read(await self.offering.github.contents.list(acts.repo, folder.path, ref=branch))
            entries += inside
        return tuple(one.path for one in entries if one.type == "file")[:_MOST_FILES]


@dataclass(frozen=True, slots=True)
class DecisionHandler(Handler):
    """Files the decision of a ritual run as a pull request, which is reviewed and merged like all others."""

    kind = DECISION_KIND
    is_cut_off = True

    offering: Offering

    async def handle(self, item: WorkItem) -> Disposition:
        """Offer the file; the merge loop does the rest. Only one SOUL files it, so it needs no claim."""
        told, repo = item.payload, Repo(item.payload["owner"], item.payload["repo"])
        task = Task(DECISION_TASK, told["title"], files=(told["path"],))
        try:
            memo = read(await self.offering.github.get_issue(repo, told["memo"]))
            acts = DocumentActs(HeldTask(FoundPlan(repo, memo, Plan(told["title"])), task, UNCLAIMED))

            def write(path: str, branch: str) -> Awaitable[object]:
                return self.offering.done(acts.document(path, told["text"], branch=branch, sha=""))

            body = f"{acts.files}\n\nPart of #{memo.number}"
            opened = await offer_documents(self.offering, acts, body, write)
        except TaskStopped as ended:
            match ended.result:
                case Deferred(reason=reason) | Stopped(reason=reason):
                    return Disposition("later", "waits", reason)
                case Failed(detail=detail):
                    return Disposition("undecided", "not-filed", detail)
            return Disposition("silent", "stands", "somebody else has filed it")
        return Disposition("done", "filed", opened.url)
