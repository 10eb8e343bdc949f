"""A model service between a SOUL and the model of your choice, which keeps every request and answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.responses import Response, StreamingResponse

from common.clock import Clock, SystemClock
from town.model.gateway import GatewayMind
from town.model.types import Json

SAID = {
    "answer_request": "text",
    "bluesky_reply": "text",
    "bluesky_reply_picture": "text",
    "bluesky_post": "text",
    "graceful_exit": "closing_message",
    "message_answer": "text",
    "github_create_issue_comment": "body",
    "github_graceful_exit": "closing_message",
    "github_submit_review": "body",
    "space_decision": "message",
}
"""The argument of each tool that holds words for somebody else."""
_OWNER = "owner-communication"


@dataclass(frozen=True, slots=True)
class WrittenText:
    """Words for somebody that a call wrote, and with which tool; "" for those of the answer itself."""

    tool: str
    text: str


@dataclass(slots=True)
class KeptCall:
    """A request of the SOUL, when it came and ended, and what was answered. `ended` is None while it is under way."""

    at: datetime
    body: Json
    ended: datetime | None = None
    received: bytes = b""

    @property
    def purpose(self) -> str:
        """What the call was for, as the SOUL tells it; "" where it does not."""
        return str((self.body.get("facts") or {}).get("purpose") or "")

    @property
    def tools(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The calls of tools in the answer, in order."""
        return [_as_call(one) for one in self._answer()[1]]

    def written(self) -> Iterator[WrittenText]:
        """Yield the words for somebody else, in order."""
        content, _ = self._answer()
        for name, arguments in self.tools:
            if text := str(arguments.get(SAID.get(name, "")) or "").strip():
                yield WrittenText(name, text)
        if self.purpose == _OWNER and content.strip() and not self.tools:
            yield WrittenText("", content.strip())

    def told_of(self, written: WrittenText) -> str:
        """Return what this request says came of `written` earlier in its turn; "" if nothing."""
        messages = self.body["messages"]
        made = {one["id"]: _as_call(one) for message in messages for one in message.get("tool_calls") or ()}
        ids = {
            key
            for key, (name, arguments) in made.items()
            if name == written.tool and str(arguments.get(SAID.get(name, ""), "")).strip() == written.text
        }
        answers = [_plain(one["content"]) for one in messages if one.get("tool_call_id") in ids]
        return answers[-1] if answers else ""

    def _answer(self) -> tuple[str, list[Json]]:
        """Return the words and the calls of tools of the answer, whether it was streamed or not."""
        text = self.received.decode(errors="replace")
        if text.startswith("{"):
            message = (json.loads(text).get("choices") or [{}])[0].get("message") or {}
            return _plain(message.get("content")), message.get("tool_calls") or []
        words, calls = "", dict[int, Json]()
        for line in text.splitlines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line.removeprefix("data: ")).get("choices") or ():
                delta = choice.get("delta") or {}
                words += delta.get("content") or ""
                for piece in delta.get("tool_calls") or ():
                    kept = calls.setdefault(piece.get("index", 0), {"function": {"name": "", "arguments": ""}})
                    for name, part in (piece.get("function") or {}).items():
                        kept["function"][name] = kept["function"].get(name, "") + (part or "")
        return words, list(calls.values())


@dataclass(frozen=True, slots=True)
class KeptMind(GatewayMind):
    """Sends each request on, without the facts, and keeps it with its answer.

    Attributes:
        path: a file to which each is added as a line of JSON once it has ended.
        calls: all of them, oldest first.

    """

    path: Path
    calls: list[KeptCall] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)

    async def forward(self, body: Json) -> Response:
        kept = KeptCall(self.clock.now(), body)
        self.calls.append(kept)
        try:
            response = await GatewayMind.forward(self, body)
        except BaseException:
            self._end(kept)
            raise
        if isinstance(response, StreamingResponse):
            response.body_iterator = self._keep(kept, response.body_iterator)
        else:
            kept.received = bytes(response.body)
            self._end(kept)
        return response

    def _end(self, kept: KeptCall) -> None:
        kept.ended = self.clock.now()
        line = {"at": f"{kept.at}", "asked": kept.body, "answered": kept.received.decode(errors="replace")}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    async def _keep(self, kept: KeptCall, parts: Any) -> AsyncIterator[bytes]:  # noqa: ANN401 - Starlette's own union
        try:
            async for part in parts:
                kept.received += part
                yield part
        finally:
            self._end(kept)


def _as_call(call: Json) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the arguments of a call; arguments that are no JSON object count as none."""
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = {}
    return str(function.get("name")), arguments if isinstance(arguments, dict) else {}


def _plain(content: object) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")
