"""The types of a commitment, of its parameters and its progress, and the keys that identify equal ones. Pure.

A model may have written them: a value of a wrong type counts as absent, and unknown names are kept unchanged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from adapters.atproto.records import web_url
from adapters.github.types import Repo
from adapters.space.types import AgentState
from common.constants import SECOND_MS
from common.result import ApiResult
from common.schemas import CommitmentType
from common.text.strings import normalized_title, u16_slice
from modules.services.outbox.types import ActStanding

_NUMBER_DIGITS = 9


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    """Convert a number of at least 1, also from a text such as `#7`; None for anything else."""
    if isinstance(value, str):
        digits = value.strip().removeprefix("#")
        value = int(digits) if digits.isdecimal() and len(digits) <= _NUMBER_DIGITS else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value < 10**_NUMBER_DIGITS else None


def _plan(value: object) -> object:
    given = value if isinstance(value, Mapping) else {}
    return value if all(isinstance(given.get(name), str) for name in ("title", "body")) else None


Text = Annotated[str, BeforeValidator(_text)]
Exact = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]
Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
Number = Annotated[int | None, BeforeValidator(_number)]


class ReadyPlan(BaseModel):
    """A plan as its issue will contain it."""

    title: str
    body: str


class _Params(BaseModel):
    """The parameters that every commitment may have.

    Attributes:
        title: its title.
        description: the body of what is made.
        content: another name for it that models use.
        target: the exact target that was claimed for it in the room.
        host_request: the host of a room, or the owner, asked for it.
        host_named: the host of a room named the repository in its own words.
        found_room: it was made in a room that was only discovered, and that the owner never named.
        undelivered: the room has not echoed the words in which it was made.
        room_id: the room in which it was made; "" if the room gave no id.

    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True, defer_build=True
    )

    title: Text = ""
    description: Text = ""
    content: Text = ""
    target: Exact = ""
    host_request: Flag = False
    host_named: Flag = Field(default=False, alias="hostNamedRepo")
    found_room: Flag = False
    undelivered: Flag = False
    room_id: Text = ""

    def as_json(self) -> dict[str, Any]:
        """Return the object in the line: all values that are not the default, under the names used there."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


class _OnGitHub(_Params):
    """The repository; `repo` or `repo_name` may contain its whole URL, and an explicit `owner` wins."""

    repo: Text = ""
    owner: Text = ""
    repo_name: Text = ""


class IssueParams(_OnGitHub):
    """The number of issues; `memo`: the issue records a conversation."""

    type: Literal["create_issue"] = Field(default="create_issue", exclude=True)
    count: Number = None
    memo: Flag = False


class PlanParams(_OnGitHub):
    """The plan, once it was made."""

    type: Literal["create_plan"] = Field(default="create_plan", exclude=True)
    plan: Annotated[ReadyPlan | None, BeforeValidator(_plan)] = None


class CommentParams(_OnGitHub):
    """The issue to comment on; `body` is the text if there is no `description`."""

    type: Literal["comment_issue"] = Field(default="comment_issue", exclude=True)
    issue_number: Number = None
    body: Text = ""


class PostParams(_Params):
    """The post; `text` is used if there is no `content`."""

    type: Literal["post_bluesky"] = Field(default="post_bluesky", exclude=True)
    text: Text = ""


GitHubParams = IssueParams | PlanParams | CommentParams
CommitmentParams = GitHubParams | PostParams

_READ: TypeAdapter[CommitmentParams] = TypeAdapter(
    Annotated[CommitmentParams, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def read_params(kind: CommitmentType, given: Mapping[str, Any]) -> CommitmentParams:
    """Return the parameters of a commitment of this kind."""
    return _READ.validate_python({**given, "type": kind})


CommitmentStatus = Literal["pending", "in_progress", "completed", "failed", "abandoned"]
CommitmentSource = Literal["bluesky", "space"]

LIVE: frozenset[CommitmentStatus] = frozenset({"pending", "in_progress", "failed"})
"""The states of a commitment that is still to be fulfilled."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody else to whom the same work was promised: the conversation, our words there, and its room if it has one.

    `found_room`: that room was only discovered.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, extra="ignore", defer_build=True)

    source_thread_uri: str
    source_reply_text: str
    source: CommitmentSource = "bluesky"
    room_id: str = ""
    found_room: bool = False


@dataclass(frozen=True, slots=True)
class QueuedCommitment:
    """A commitment in the queue: the payload of a row of work, and one line of the file that shows it.

    Attributes:
        id: `commitment-<epoch ms>-<16 hex>`.
        created_at: ISO-8601 UTC.
        description: what is to be done; at its creation the title, or the words of the commitment.
        source_thread_uri: the conversation, `at://…` or `space://conversation/…`.
        source_reply_text: the words in which it was made.
        params: its parameters; their type is the kind of act that fulfils it.
        source: where it was made.
        status: its state.
        attempt_count: the number of tries that counted: those that failed and the one that fulfilled it.
        last_attempt_at: when the last try began, ISO-8601 UTC.
        error: why the last try failed.
        not_before: when a `pending` commitment may be tried at the earliest, ISO-8601 UTC; None if at once.
        waits_for: the last reason to wait that was noted since its last try began; None if there was none.
        ended_at: when it was fulfilled or abandoned, ISO-8601 UTC; None before, and in rows of earlier versions.
        result: what came of it, also in part: `{"issues": [{"number", "title", "url"}], "count"}`, `{"uri", "cid"}`, …
        askers: to whom else the same was promised, and who is told too.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, extra="ignore", defer_build=True)

    id: Annotated[str, Field(min_length=1)]
    created_at: str
    description: str
    source_thread_uri: str
    source_reply_text: str
    params: CommitmentParams
    source: CommitmentSource = "bluesky"
    status: CommitmentStatus = "pending"
    attempt_count: Annotated[int, Field(ge=0)] = 0
    last_attempt_at: str | None = None
    error: str | None = None
    result: Mapping[str, Any] | None = None
    not_before: str | None = None
    waits_for: str | None = None
    ended_at: str | None = None
    askers: tuple[Asker, ...] = ()

    @property
    def type(self) -> CommitmentType:
        """The kind of act that fulfils it."""
        return self.params.type

    @property
    def by_asker(self) -> list[QueuedCommitment]:
        """The commitment as it was made to each asker, the first one first."""
        return [self, *(self._made_to(one) for one in self.askers)]

    def _made_to(self, asker: Asker) -> QueuedCommitment:
        params = self.params.model_copy(update={"room_id": asker.room_id, "found_room": asker.found_room})
        return replace(
            self,
            source=asker.source,
            source_thread_uri=asker.source_thread_uri,
            source_reply_text=asker.source_reply_text,
            params=params,
        )


@dataclass(frozen=True, slots=True)
class CommitmentRequest:
    """A commitment as it is passed to the queue."""

    description: str
    source_thread_uri: str
    source_reply_text: str
    params: CommitmentParams
    source: CommitmentSource

    @property
    def type(self) -> CommitmentType:
        """The kind of act that fulfils it."""
        return self.params.type


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer of the queue: the commitment that is now queued, whether it is new, and as `reason` why it is not."""

    commitment: QueuedCommitment | None
    new: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a commitment after one step.

    Attributes:
        state: `done`; `prepared`, with new parameters in `prepared`; `waits` for an act that is on its way; `held`, an
            act waits for the owner's approval; `failed`; `put_off`, failed without its own fault; `later`, the outbox
            asks to propose it again; `refused` by the owner; `unwelcome` in its place, and never to be tried again.
        reason: why it is not done.
        result: what came of it so far.
        not_before: for `later`, when to propose it again.
        prepared: the new parameters.
        proposed: the act that was proposed in this step, with its state.

    """

    state: Literal["done", "prepared", "waits", "held", "failed", "put_off", "later", "refused", "unwelcome"]
    reason: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    prepared: PlanParams | None = None
    proposed: ActStanding | None = None


class CommitmentRoom(Protocol):
    """The agent space, as far as commitments need it. Every call returns quickly, and no failure is fatal."""

    @property
    def is_active(self) -> bool: ...

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]: ...

    async def send_claim(self, action: str, target: str) -> ApiResult[None]: ...

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]: ...

    def has_active_claim(self, action: str, target: str) -> str | None:
        """Return the name of another member that holds the claim, or None."""
        ...


NO_REPO = "no_workspace_context"
"""The error of a commitment for GitHub that names no repository when there is no default."""

_TARGET_UNITS = 50
_HASH_CHARS = 16

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_LINK = re.compile(r"(?:https?://)?(?:www\.)?github\.com/|\.git/?$|(?<!/)/+$", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w&#])#(\d{1,9})(?![\w;])")

WorkKey = tuple[str, str, str]


def resolve_repo(named: str, owner: str = "", default: Repo | None = None) -> Repo | None:
    """Return the repository that a name or a URL means, or None; an explicit `owner` wins.

    What is missing is taken from `default`, for example the repository of the active workspace.
    """
    path = _LINK.sub("", named.strip())
    before, _, name = path.rpartition("/")
    owner = owner or before
    if not owner and default is not None and (not name or name.lower() == default.name.lower()):
        return default
    owner = owner or (default.owner if default else "")
    if not (_NAME.fullmatch(owner) and _NAME.fullmatch(name)) or {owner, name} & {".", ".."}:
        return None
    return Repo(owner, name)


def repo_of(params: CommitmentParams, default: Repo | None = None) -> Repo | None:
    """Return the repository that a commitment is for, or else `default`; None for a post."""
    if isinstance(params, PostParams):
        return None
    return resolve_repo(params.repo_name or params.repo, params.owner, default)


def repo_key(params: GitHubParams) -> str:
    """Return `owner/name` in lower case, as far as it is known."""
    repo = repo_of(params)
    return (repo.full_name if repo else params.repo_name or params.repo).lower()


def number_in(*texts: str) -> int | None:
    """Return the number of the first issue that is named in `texts` as `#N`, or None."""
    found = next(filter(None, (_NUMBER.search(text) for text in texts)), None)
    return int(found[1]) if found else None


def extract_fulfillment_url(kind: CommitmentType, result: Mapping[str, Any] | None) -> str:
    """Return the link to the result of a commitment; "" if there is none."""
    if not result:
        return ""
    match kind:
        case "create_issue":
            issues = result.get("issues")
            first = issues[0] if isinstance(issues, list | tuple) and issues else {}
            return _text(first.get("url")) if isinstance(first, Mapping) else ""
        case "create_plan":
            return _text(result.get("issueUrl"))
        case "comment_issue":
            return _text(result.get("url"))
        case "post_bluesky":
            return web_url(_text(result.get("uri")))


def title_of(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """Return the title of a commitment, or its description if it has none."""
    return commitment.params.title or commitment.description


def text_of(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """Return the text that a commitment will publish, as it was written; "" if a comment or a post has none."""
    match commitment.params:
        case CommentParams(body=body) as params:
            return body or params.description or params.content
        case PostParams(text=text) as params:
            return params.content or text or params.description
        case params:
            return params.description or params.content or commitment.description


def claim_target(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """Return the target that was claimed when the commitment was made, and is claimed again while it is fulfilled."""
    params = commitment.params
    if params.target:
        return params.target
    place = "/" if isinstance(params, PostParams) else f"{params.owner}/{params.repo_name or params.repo}"
    return target_of(place, title_of(commitment))


def target_of(repo: str, title: str) -> str:
    """Return the target of a claim: `<owner/name>#<first 50 UTF-16 units of title>`, `unknown` for a partial `repo`."""
    owner, _, name = repo.partition("/")
    return f"{repo if owner and name else 'unknown'}#{u16_slice(title, _TARGET_UNITS)}"


def generate_commitment_hash(source_thread_uri: str, description: str) -> str:
    """Return 16 hex digits that are equal for equal commitments of one conversation, ignoring case and white space."""
    said = " ".join(description.lower().split())
    return hashlib.sha256(f"{source_thread_uri}:{said}".encode(errors="replace")).hexdigest()[:_HASH_CHARS]


def request_hash(request: CommitmentRequest) -> str:
    """Return the hash of a request, which is also the end of the id of its commitment."""
    return generate_commitment_hash(request.source_thread_uri, request.description)


def free_id(request: CommitmentRequest, now: datetime, taken: Container[str]) -> str:
    """Return an unused id, `commitment-<epoch ms>-<hash>`; if it is taken, the milliseconds are counted up."""
    made_ms = int(now.timestamp() * SECOND_MS)
    return next(name for ms in count(made_ms) if (name := f"commitment-{ms}-{request_hash(request)}") not in taken)


def work_key(commitment: QueuedCommitment | CommitmentRequest) -> WorkKey:
    """Return a key of the result of a commitment, whatever its wording: kind, place, and normalized title or text."""
    match commitment.params:
        case CommentParams() as params:
            text, place = text_of(commitment), f"{repo_key(params)}#{params.issue_number or ''}"
        case PostParams():
            text, place = text_of(commitment), ""
        case params:
            text, place = title_of(commitment), repo_key(params)
    return commitment.type, place, normalized_title(text)
