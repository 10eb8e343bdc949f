"""A conversation in its three forms: rows, a transcript for a model, and the bytes of an archive.

A message has the same JSON in a row and in a line of an archive; the same rows give the same bytes.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from common.clock import parse_iso
from common.facts import SaidLine
from common.json_lines import split_lines
from common.provenance import Provenance
from common.redact import Redactor
from modules.runtime.llm.dialect import Block, Image, Message, Text, ToolAnswer, ToolCall

Role = Literal["user", "assistant", "toolResult"]


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation. Times are ISO-8601 UTC."""

    id: str
    key: str
    created_at: str
    last_active_at: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One stored message: `message` is what the model saw, `tokens` an estimate, `provenance` whose words it holds.

    `is_note` marks words of the program, such as a summary of ours.
    `dids` are the accounts whose words it rests on, separated by spaces; it is deleted when they are forgotten.
    """

    session_id: str
    seq: int
    role: Role
    message: Message
    tokens: int
    provenance: Provenance
    created_at: str
    dids: str = ""
    is_note: bool = False


Fields = dict[str, Any]

_PICTURE_TOKENS = 1600  # the most of the usual services, for 1024 by 1024 pixels
_MESSAGE_TOKENS = 4


def parts(message: Message) -> list[tuple[Role, Message]]:
    """Return `message` as rows hold it: tool answers first, one per row, then its own words."""
    if message.role == "assistant":
        return [("assistant", message)]
    if isinstance(message.content, str):
        return [("user", message)]
    answers = [block for block in message.content if isinstance(block, ToolAnswer)]
    words = tuple(block for block in message.content if not isinstance(block, ToolAnswer))
    rows: list[tuple[Role, Message]] = [("toolResult", Message("user", (answer,))) for answer in answers]
    return [*rows, ("user", Message("user", words))] if words or not answers else rows


def blocks(message: Message) -> tuple[Block, ...]:
    """Return the content of a message as blocks."""
    return (Text(message.content),) if isinstance(message.content, str) else message.content


def to_fields(role: Role, message: Message) -> Fields:
    """Return the JSON of one part. Raises `ValueError` for a tool answer that is not alone."""
    if role == "toolResult":
        match message.content:
            case (ToolAnswer() as answer,):
                return _answer_fields(answer)
        raise ValueError("a tool answer is alone in its row")
    if role == "user" and isinstance(message.content, str):
        return {"content": message.content}
    return {"content": [_to_json(block) for block in blocks(message)]}


def from_fields(role: Role, fields: Mapping[str, Any]) -> Message:
    """Return the message of such JSON. Raises `ValueError` for what `to_fields` would never have written."""
    try:
        if role == "toolResult":
            return Message("user", (_answer(fields),))
        content = fields["content"]
        if not isinstance(content, str):
            content = _plain(tuple(map(_from_json, content)))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a message: {error}") from error
    return Message("assistant" if role == "assistant" else "user", content)


def redacted(message: Message, redactor: Redactor) -> Message:
    """Return `message` without secrets; ids, names and keys stay, as a call would otherwise lose its answer."""
    if isinstance(message.content, str):
        return replace(message, content=redactor.text(message.content))
    return replace(message, content=tuple(_redacted(block, redactor) for block in message.content))


def tokens_of(message: Message, estimate: Callable[[str], int]) -> int:
    """Return the estimated tokens of a message in a prompt."""
    said = blocks(message)
    pictures = sum(isinstance(block, Image) for block in said)
    return estimate("\n".join(map(words_of, said))) + pictures * _PICTURE_TOKENS + _MESSAGE_TOKENS


def words_of(block: Block) -> str:
    """Return the readable text of a block."""
    match block:
        case Text(text):
            return text
        case Image():
            return block.alt
        case ToolCall():
            return f"{block.name} {dump(block.input)}"
        case ToolAnswer():
            return block.content


def dump(value: object) -> str:
    """Return JSON on one line; half a surrogate pair, which UTF-8 cannot encode, stays a reversible escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(content: str | tuple[Block, ...]) -> str | tuple[Block, ...]:
    match content:
        case (Text(text),):
            return text
    return content


def _to_json(block: Block) -> Fields:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(key, mime, alt):
            return {"type": "image", "r2Key": key, "mimeType": mime, "alt": alt}
        case ToolCall(call_id, name, arguments, malformed):
            fields = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
            return {**fields, "malformed": malformed} if malformed else fields
        case ToolAnswer():
            return {"type": "toolResult", **_answer_fields(block)}


def _from_json(fields: Mapping[str, Any]) -> Block:
    match fields["type"]:
        case "text":
            return Text(fields["text"])
        case "image":
            return Image(fields["r2Key"], fields["mimeType"], fields["alt"])
        case "toolCall":
            return ToolCall(fields["id"], fields["name"], fields["arguments"], fields.get("malformed", ""))
        case "toolResult":
            return _answer(fields)
        case other:
            raise ValueError(f"not a block: {other!r}")


def _answer_fields(answer: ToolAnswer) -> Fields:
    fields = {"content": answer.content, "toolCallId": answer.tool_use_id, "toolName": answer.name}
    return {**fields, "isError": answer.is_error, **({"isHeld": True} if answer.is_held else {})}


def _answer(fields: Mapping[str, Any]) -> ToolAnswer:
    called, is_held = (fields["toolCallId"], fields["toolName"]), bool(fields.get("isHeld"))
    return ToolAnswer(*called, fields["content"], is_error=bool(fields["isError"]), is_held=is_held)


def _redacted(block: Block, redactor: Redactor) -> Block:
    match block:
        case Text(text):
            return Text(redactor.text(text))
        case Image():
            return replace(block, alt=redactor.text(block.alt))
        case ToolCall():
            return replace(block, input=redactor.value(block.input), malformed=redactor.text(block.malformed))
        case ToolAnswer():
            return replace(block, content=redactor.text(block.content))


_WORDS_CHARS = 2000
_TOOL_CHARS = 300


def transcript(rows: Iterable[MessageRow], estimate: Callable[[str], int], most_tokens: int) -> str:
    """Return who said what, line by line; if that is too long, the oldest lines except the first are left out."""
    first, *lines = [line for row in rows for line in _lines(row)] or [""]
    room = most_tokens - estimate(first)
    kept: list[str] = []
    for line in reversed(lines):
        room -= estimate(line) + 1
        if room < 0:
            break
        kept.append(line)
    left_out = ["[…]"] if len(kept) < len(lines) else []
    return "\n".join([first, *left_out, *reversed(kept)])


def said_lines(rows: Iterable[MessageRow]) -> tuple[SaidLine, ...]:
    """Return what people and the SOUL said, without tool calls and answers."""
    said = (row for row in rows if not row.is_note)
    spoken = (
        (row, " ".join(words_of(one).split())) for row in said for one in blocks(row.message) if not _is_tool(one)
    )
    names = {"YOU": "", "OWNER": "owner", "THEM": "them"}
    return tuple(SaidLine(names[_who(row)], words) for row, words in spoken if words)


def said_since(messages: Iterable[Message]) -> str:
    """Return what the SOUL said after the last words of a user, without a text that another one holds."""
    said: list[str] = []
    for message in messages:
        if message.role == "user" and not all(map(_is_tool, blocks(message))):
            said = []
        for text in (block.text.strip() for block in blocks(message) if isinstance(block, Text)):
            if text and message.role == "assistant" and not any(_holds(one, text) for one in said):
                said = [*(one for one in said if not _holds(text, one)), text]
    return "\n\n".join(said)


def _holds(text: str, part: str) -> bool:
    """Return whether a text holds another as whole words."""
    words, sought = (" ".join(one.split()) for one in (text, part))
    return f" {sought} " in f" {words} "


def _is_tool(block: Block) -> bool:
    return isinstance(block, ToolCall | ToolAnswer)


def _lines(row: MessageRow) -> Iterator[str]:
    for block in blocks(row.message):
        words = " ".join(words_of(block).split())
        match block:
            case ToolCall():
                yield f"YOU used {_cut(words, _TOOL_CHARS)}"
            case ToolAnswer():
                yield f"TOOL {block.name}: {_cut(words, _TOOL_CHARS)}"
            case _ if words:
                yield f"{_who(row)}: {_cut(words, _WORDS_CHARS)}"


def _who(row: MessageRow) -> str:
    if row.is_note:
        return "NOTE"
    if row.role == "assistant":
        return "YOU"
    return "OWNER" if row.provenance is Provenance.OWNER else "THEM"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


CONTENT_TYPE = "application/gzip"

_SECOND_MS = 1000
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "toolResult": "toolResult"}


@dataclass(frozen=True, slots=True)
class ArchivedLine:
    """One line of an archive; `timestamp` in milliseconds since 1970."""

    role: Role
    message: Message
    timestamp: int


def pack(rows: Iterable[MessageRow]) -> bytes:
    """Return the bytes of the archive of `rows`."""
    lines = "".join(f"{dump(_fields(row))}\n" for row in rows)
    return gzip.compress(lines.encode(), mtime=0)


def unpack(data: bytes) -> list[ArchivedLine]:
    """Return the lines of an archive. Raises `ValueError` if it is damaged."""
    try:
        text = gzip.decompress(data).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a whole archive: {error}") from error
    if not data:
        raise ValueError("not an archive: it is empty")
    return [_line(json.loads(line)) for line in split_lines(text)]


def epoch_ms(moment: str) -> int:
    """Return an ISO-8601 time in milliseconds since 1970."""
    return round(parse_iso(moment).timestamp() * _SECOND_MS)


def _fields(row: MessageRow) -> Fields:
    fields = {"role": row.role, **to_fields(row.role, row.message), "timestamp": epoch_ms(row.created_at)}
    return {**fields, "dids": row.dids} if row.dids else fields


def _line(fields: Fields) -> ArchivedLine:
    try:
        role = _ROLES[fields["role"]]
        return ArchivedLine(role, from_fields(role, fields), int(fields["timestamp"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a line of an archive: {error}") from error
