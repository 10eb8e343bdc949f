"""What a request to a model is about, as data beside the prompt: frozen values that turn into JSON.

A model service that reads them (setting `AI_GATEWAY_FACTS`) gets them as the field `facts` of a request; any other
service gets the words alone. Texts by other people are data here as they are in a prompt: cleaned, and bounded in size.
Facts are made anew for each request; nothing of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from common.text.untrusted import clean

FACTS_TEXT_CHARS = 4_000
FACTS_ITEMS = 100
_CUT_BEFORE_CLEANING = 4


@dataclass(frozen=True, slots=True)
class SaidLine:
    """Something that was said; `who` is "" for the agent itself."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class PostFacts:
    """A Bluesky post that may be answered.

    Attributes:
        uri: of the post, with its `cid`.
        author: handle, without the @.
        notification_kind: what the notification of it is, for example `mention`.
        thread: the posts before it, oldest first; `who` is a handle.
        is_owner: whether the author is the agent's owner.
        several_addressed: whether the post mentions more than one account.
        trust: of the least trusted text in the thread, for example `stranger`.
        pictures: how many pictures of the post the model is shown.
        offered: the title of the picture that a reply may show; "" if there is none.
        account: the agent's name on GitHub, which a reply is to tell; "" where it need not.
        ritual: the name of the ritual that it opens; "" where it opens none.
        part: the agent's part in that thread, for example `critic`.

    """

    uri: str
    cid: str
    author: str
    text: str
    notification_kind: str = "mention"
    thread: tuple[SaidLine, ...] = ()
    is_owner: bool = False
    several_addressed: bool = False
    trust: str = "stranger"
    pictures: int = 0
    offered: str = ""
    account: str = field(default="", repr=False)
    ritual: str = ""
    part: str = ""
    kind: Literal["post"] = "post"


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """What somebody who is not the owner wrote in a direct message.

    Attributes:
        author: handle, without the @.
        text: what they wrote since our last answer, a line for each message.
        said: what was said before, oldest first; `who` is a handle.
        is_bot: whether the author's profile says that they are a program.

    """

    author: str
    text: str
    said: tuple[SaidLine, ...] = ()
    is_bot: bool = False
    kind: Literal["message"] = "message"


@dataclass(frozen=True, slots=True)
class IssueFacts:
    """An issue or pull request on GitHub that may be answered with a comment.

    Attributes:
        repo: `owner/name`, and the `number` there.
        title: of it, with its first `text`.
        author: login, without the @.
        said: the newest comments, oldest first; `who` is a login.
        is_pull_request: whether it is one.
        is_owner_request: whether the agent's owner showed it to the agent.
        why: the code of the reason for which it is to be answered, for example `mentioned`.

    """

    repo: str
    number: int
    title: str
    author: str
    text: str
    said: tuple[SaidLine, ...] = ()
    is_pull_request: bool = False
    is_owner_request: bool = False
    why: str = ""
    kind: Literal["issue"] = "issue"


@dataclass(frozen=True, slots=True)
class ExpressionFacts:
    """A post of the agent's own: where it starts from, the lines of SELF.md that it is about, the latest own posts.

    `answered` and `unanswered` are sources from which earlier posts started, by what readers made of these. `picture`
    is the title of the picture that the post shows, "" if it shows none.
    """

    source: str = ""
    lines: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    picture: str = ""
    kind: Literal["expression"] = "expression"


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """A line that the owner typed, and the status line that the prompt tells.

    `first` marks the first talk; there `said` is what was said so far, oldest first, and `line` is "" where the agent
    opens it.
    """

    line: str
    situation: str = ""
    first: bool = False
    said: tuple[SaidLine, ...] = ()
    kind: Literal["owner"] = "owner"


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """A room at one moment.

    Attributes:
        me: the agent's name in the room.
        present: names of the other agents there; the host is not among them.
        said: what was said, oldest first; `who` is `host` for the host.
        new: how many of these lines are new.
        mode: `action` where the host asked for something to be done, else `discussion`.
        addressed: names that the host's newest message addresses.
        request: the host's request, where it waits for somebody; else "".
        critical: whether it has waited too long.
        owner: who acts on it; "" for nobody.
        is_owner: whether that is the agent.
        role: the agent's part in it, for example `observer`.
        signal: `saturated`, `spoken`, `only_new` or `none`: how much was said since the host spoke.
        follow_up: what the host asks about: `link` (it is done), `wake_commitments` (it is queued) or `none`.
        links: where that which is done can be seen.
        repo: `owner/name` of the repository that is talked about; "" if none is known.
        needs_repo: whether the host is to be asked for one.
        without_github: whether the request needs GitHub, which nobody here has.
        opens: whether the agent opens a conversation now.
        doing: what the agent has promised and not yet done, and how far the plans are that are worked on.
        done: what of its promises the agent has kept lately.
        today: what the agent did in public today, where the host spoke; else "".

    """

    me: str
    present: tuple[str, ...] = ()
    said: tuple[SaidLine, ...] = ()
    new: int = 0
    mode: str = "discussion"
    addressed: tuple[str, ...] = ()
    request: str = ""
    critical: bool = False
    owner: str = ""
    is_owner: bool = False
    role: str = "actor"
    signal: str = "none"
    follow_up: str = "none"
    links: tuple[str, ...] = ()
    repo: str = ""
    needs_repo: bool = False
    without_github: bool = False
    opens: bool = False
    doing: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    today: str = ""
    kind: Literal["room"] = "room"


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """A conversation that goes into the archive, oldest line first; `who` is `owner` or `them`."""

    said: tuple[SaidLine, ...] = ()
    kind: Literal["memory"] = "memory"


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """A question with an answer in plain text: its name, and the texts that it is about, by field."""

    question: str
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kind: Literal["question"] = "question"


@dataclass(frozen=True, slots=True)
class OwnTimeFacts:
    """A turn of the agent's own: `what` it is to do at this time."""

    what: str
    kind: Literal["own_time"] = "own_time"


@dataclass(frozen=True, slots=True)
class CodingFacts:
    """A task of a plan that is coded: its title, and the files that it names. What was done so far are outcomes."""

    title: str
    files: tuple[str, ...] = ()
    kind: Literal["coding"] = "coding"


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    """A pull request that is reviewed, and whose tests were run.

    Attributes:
        repo: `owner/name`, and the `number` there.
        title: of it.
        author: login, without the @.
        files: that it changes.
        tests: what they came to: `passed`, `failed`, `failing_before`, `unrun` or `none`.
        commands: that test the repository.
        failing: names of tests that failed.
        weakened: what the changes take from the tests: tests, files of them, commands.

    """

    repo: str
    number: int
    title: str
    author: str
    files: tuple[str, ...] = ()
    tests: str = "none"
    commands: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()
    kind: Literal["review"] = "review"


@dataclass(frozen=True, slots=True)
class ExperienceFact:
    """An experience: its name and type, the account of the other person and their trust, and our own words."""

    name: str
    type: str
    did: str = ""
    trust: str = "self"
    about: str = ""


@dataclass(frozen=True, slots=True)
class ReflectionFacts:
    """A look back on these experiences, oldest first; `sections` are those of SELF.md as they stand, by part.

    `proposal` is what it decided to write a skill about, in codes; "" for nothing.
    """

    experiences: tuple[ExperienceFact, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    proposal: str = field(default="", repr=False)
    kind: Literal["reflection"] = "reflection"


@dataclass(frozen=True, slots=True)
class ReadingFacts:
    """A question that the agent looks up on Bluesky."""

    question: str
    kind: Literal["reading"] = "reading"


About: TypeAlias = (
    ReflectionFacts
    | ReadingFacts
    | PostFacts
    | MessageFacts
    | IssueFacts
    | ExpressionFacts
    | OwnerFacts
    | RoomFacts
    | MemoryFacts
    | QuestionFacts
    | OwnTimeFacts
    | CodingFacts
    | ReviewFacts
)
"""What a turn is about; `kind` tells which."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """Who is asked: the name that is shown, the handle, SOUL.md, and the lines of SELF.md by the part they stand in."""

    name: str = ""
    handle: str = ""
    soul: str = ""
    self_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call earlier in the turn.

    Attributes:
        tool: that was called.
        failed: whether it came to nothing.
        held: whether it waits for the owner's approval.
        act: what it came to.
        draft: the text that is to be revised.
        text: the argument of that name.
        url: where that which it made, or found in its place, stands.
        words: those of the request for which it did something.

    """

    tool: str
    failed: bool = False
    held: bool = False
    act: str = ""
    draft: str = ""
    text: str = ""
    url: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """The facts of one request.

    Attributes:
        about: what the turn is about; None where nothing is known of it.
        agent: who is asked.
        at: when, ISO 8601 in UTC; "" where the time does not matter.
        outcomes: of the calls that were made in this turn, oldest first.
        purpose: of the request, for example the name of a skill.
        own_skills: the pages of the agent's own skills that stand in the prompt.

    """

    about: About | None = None
    agent: AgentFacts = field(default_factory=AgentFacts)
    at: str = ""
    outcomes: tuple[ToolOutcome, ...] = ()
    purpose: str = ""
    own_skills: str = field(default="", repr=False)

    def as_json(self, redact: Callable[[Any], Any]) -> dict[str, Any]:
        """The same as JSON that passed `redact`: texts cleaned and at most 4,000 characters long, lists at most 100."""
        bounded: dict[str, Any] = _bounded(redact(asdict(self)))
        return bounded


def _bounded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return clean(value[: _CUT_BEFORE_CLEANING * FACTS_TEXT_CHARS])[:FACTS_TEXT_CHARS]
    if isinstance(value, Mapping):
        return {key: _bounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(item) for item in value[-FACTS_ITEMS:]]
    return value
