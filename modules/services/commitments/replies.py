"""From a decision, or from words that were said, to commitments in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.line_kind import LineKind
from common.schemas import Commitment, CommitmentType, ExtractedCommitment
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.naming import resolve_repo
from modules.services.commitments.params import read_params
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.types import CommitmentRequest, CommitmentSource, Enqueued, QueuedCommitment
from modules.services.commitments.writer import CommitmentWriter, as_commitments

_KEPT_PARAMS = ("count", "memo")


def commitment_request(
    commitment: Commitment,
    *,
    source: CommitmentSource,
    thread: str,
    said: str,
    default_repo: str | None = None,
    description: str = "",
    target: str = "",
    host_request: bool = False,
    more: dict[str, Any] | None = None,
) -> CommitmentRequest:
    """A commitment as the queue takes it; what says nothing is left out of its parameters.

    Args:
        commitment: as decided; its description is the body of the artefact.
        source: where it was made.
        thread: the conversation, `space://conversation/…` or the `at://` uri of the post that was answered.
        said: the words of the commitment.
        default_repo: `owner/name` where the commitment names no repository and needs one.
        description: the body, if it was written in full since.
        target: what was claimed for it in the room.
        host_request: whether the host of the room asked for it.
        more: other parameters, for example `count`.

    """
    named = (commitment.repo or default_repo or "") if commitment.is_github else ""
    repo = resolve_repo(named) if named else None
    body = description or commitment.description
    params = {
        "title": commitment.title,
        "description": body,
        "content": commitment.content,
        "repo": repo.name if repo else named,
        "owner": repo.owner if repo else "",
        "repoName": repo.name if repo else "",
        "issueNumber": commitment.number if commitment.type == "comment_issue" else None,
        "target": target,
        **(more or {}),
        "hostRequest": host_request,
    }
    kept = read_params(commitment.type, {name: value for name, value in params.items() if value})
    return CommitmentRequest(commitment.title or body or commitment.content, thread, said, kept, source)


@dataclass(frozen=True, slots=True)
class ReplyCommitments:
    """Looks for commitments in the replies that were sent on Bluesky, and takes them in.

    Attributes:
        queue: where commitments are stored.
        writer: finds them.
        journal: records each.
        social_only: whether this life keeps away from GitHub.

    """

    queue: CommitmentQueue
    writer: CommitmentWriter
    journal: Journal
    social_only: bool = False

    async def note_reply(
        self,
        reply: str,
        *,
        to_uri: str,
        conversation: str = "",
        done: Sequence[CommitmentType] = (),
        to_owner: bool = False,
    ) -> list[QueuedCommitment]:
        """Take in the commitments that `reply` makes.

        Args:
            reply: what we wrote.
            to_uri: the post that it answers.
            conversation: what others said there before.
            done: kinds of work that a tool did in the same turn.
            to_owner: whether it answers the owner.

        """
        found = await self.writer.extract_commitments([reply], context=conversation, done=done)
        taken = []
        for one in found:
            enqueued = await self._take(one, reply, to_uri, conversation, to_owner=to_owner)
            if enqueued.new and enqueued.commitment is not None:
                taken.append(enqueued.commitment)
        return taken

    async def _take(
        self, found: ExtractedCommitment, reply: str, to_uri: str, conversation: str, *, to_owner: bool
    ) -> Enqueued:
        checked = as_commitments([found], social_only=self.social_only)
        if not checked.valid:
            enqueued = Enqueued(None, new=False, reason=checked.dropped[0].reason)
        else:
            (commitment,) = checked.valid
            request = commitment_request(
                commitment,
                source="bluesky",
                thread=to_uri,
                said=reply,
                description=await self.writer.enrich(commitment, f"{conversation}\nYOU: {reply}"),
                host_request=to_owner,
                more={name: found.params[name] for name in _KEPT_PARAMS if name in found.params},
            )
            enqueued = await self.queue.enqueue_commitment(request)
        summary = (
            f"Committed: {found.description}" if enqueued.new else f"Not taken as a commitment: {found.description}"
        )
        reason = enqueued.reason or found.type
        line: LineKind | None = "act" if enqueued.new else None
        await self.journal.record(Entry("decision", "commitments", summary, line, reason, trigger_uri=to_uri))
        return enqueued
