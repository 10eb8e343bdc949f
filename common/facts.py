"""The subject of a request to a model, as data beside the prompt: frozen values that are converted to JSON.

A model service that reads them (setting `AI_GATEWAY_FACTS`) gets them as the field `facts` of a request; any other
service gets only the prompt. Texts by other people are data here as in a prompt: cleaned, and bounded in size. Facts
are built for each request and not kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from common.text.untrusted import clean

FACTS_TEXT_CHARS = 4_000
FACTS_ITEMS = 100
_CUT_BEFORE_CLEANING = 4


@dataclass(frozen=True, slots=True)
class SaidLine:
    """A message in a conversation; `who` is "" for the agent itself."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class PostFacts:
    """A Bluesky post that may be answered.

    Attributes:
        uri: the uri of the post, beside its `cid`.
        author: handle, without the @.
        notification_kind: the kind of the notification about it, for example `mention`.
        thread: the posts before it, oldest first; `who` is a handle.
        is_owner: whether the author is the agent's owner.
        several_addressed: whether the post mentions more than one account.
        trust: the trust of the least trusted text in the thread, for example `stranger`.
        pictures: how many pictures of the post the model is shown.
        offered: the title of the picture that a reply may show; "" if there is none.
        account: the agent's name on GitHub, which a reply should mention; "" if it need not.
        ritual: the name of the ritual that it opens; "" if it opens none.
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
    """Direct messages by somebody who is not the owner.

    Attributes:
        author: handle, without the @.
        text: what they wrote since our last answer, a line for each message.
        said: the conversation before, oldest first; `who` is a handle.
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
        repo: `owner/name`, beside the `number` there.
        title: its title, beside its first `text`.
        author: login, without the @.
        said: the newest comments, oldest first; `who` is a login.
        is_pull_request: whether it is a pull request.
        is_owner_request: whether the agent's owner pointed the agent to it.
        why: the code of the reason to answer it, for example `mentioned`.

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
    """A post of the agent's own: its source, the lines of SELF.md that it is about, and the latest own posts.

    `answered` and `unanswered` are sources of earlier posts, by whether readers responded to these. `picture` is the
    title of the picture that the post shows, "" if it shows none.
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
    """A line that the owner typed, and the status line in the prompt.

    `first` marks the first conversation; then `said` is its course so far, oldest first, and `line` is "" if the agent
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
        said: the messages, oldest first; `who` is `host` for the host.
        new: how many of these messages are new.
        mode: `action` if the host asked for something to be done, else `discussion`.
        addressed: names that the host's newest message addresses.
        request: the host request, if it waits for somebody; else "".
        critical: whether it has waited too long.
        owner: its assignee; "" for nobody.
        is_owner: whether that is the agent.
        role: the agent's role in it, for example `observer`.
        signal: `saturated`, `spoken`, `only_new` or `none`: how much was said since the host's message.
        follow_up: what the host asks about: `link` (it is done), `wake_commitments` (it is queued) or `none`.
        links: URLs of what is done.
        repo: `owner/name` of the repository under discussion; "" if none is known.
        needs_repo: whether to ask the host for one.
        without_github: whether the request needs GitHub, which nobody here has.
        opens: whether the agent opens a conversation now.
        doing: the agent's open commitments, and the progress of the plans that are worked on.
        done: the agent's recently fulfilled commitments.
        today: what the agent did in public today, if the host wrote something; else "".

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
    """A conversation that goes into the archive, oldest message first; `who` is `owner` or `them`."""

    said: tuple[SaidLine, ...] = ()
    kind: Literal["memory"] = "memory"


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """A question that is answered in plain text: its name, and the texts that it is about, by field."""

    question: str
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kind: Literal["question"] = "question"


@dataclass(frozen=True, slots=True)
class OwnTimeFacts:
    """A turn of the agent's own, at a set time; `what` is its task."""

    what: str
    kind: Literal["own_time"] = "own_time"


@dataclass(frozen=True, slots=True)
class CodingFacts:
    """A task of a plan: its title, the files that it names, and the plan's goal. The work so far is in the outcomes."""

    title: str
    files: tuple[str, ...] = ()
    goal: str = ""
    kind: Literal["coding"] = "coding"


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    """A pull request that is reviewed, and whose tests were run.

    Attributes:
        repo: `owner/name`, beside the `number` there.
        title: its title.
        author: login, without the @.
        files: the files that it changes.
        tests: their result: `passed`, `failed`, `failing_before`, `unrun` or `none`.
        commands: the commands that test the repository.
        failing: names of tests that failed.
        weakened: what the changes remove from the tests: tests, test files, commands.

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
    """A reflection on these experiences, oldest first; `sections` are the present sections of SELF.md, by part.

    `proposal` is the subject of the skill that it decided to write, in codes; "" for none.
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
"""The subject of a turn; `kind` tells which."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """The agent that is asked: its display name, its handle, SOUL.md, and the lines of SELF.md by part."""

    name: str = ""
    handle: str = ""
    soul: str = ""
    self_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of an earlier call in the turn.

    Attributes:
        tool: the tool that was called.
        failed: whether it had no effect.
        held: whether it waits for the owner's approval.
        act: the resulting act.
        draft: the text that has to be revised.
        text: the argument of that name.
        url: the URL of what it made, or of what it found to exist already.
        words: the words of the request for which it did something.

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
        about: what the turn is about; None if nothing is known of it.
        agent: the agent that is asked.
        at: the time, ISO 8601 in UTC; "" if it does not matter.
        outcomes: the outcomes of earlier calls in this turn, oldest first.
        purpose: the purpose of the request, for example the name of a skill.
        own_skills: the pages of the agent's own skills in the prompt.

    """

    about: About | None = None
    agent: AgentFacts = field(default_factory=AgentFacts)
    at: str = ""
    outcomes: tuple[ToolOutcome, ...] = ()
    purpose: str = ""
    own_skills: str = field(default="", repr=False)

    def as_json(self, redact: Callable[[Any], Any]) -> dict[str, Any]:
        """Return them as JSON after `redact`: texts cleaned and cut to 4,000 characters, lists to their last 100."""
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
