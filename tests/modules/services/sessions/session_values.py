"""Messages and rows for tests: drawn by hypothesis, or written by hand."""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from common.provenance import Provenance
from modules.runtime.llm.dialect import Block, Image, Message, Text, ToolAnswer, ToolCall
from modules.services.sessions.types import MessageRow, Role, blocks, parts, tokens_of

WORDS = st.text(max_size=12)
IDS = st.sampled_from(["", "call_a", "call_b", "call_c"])
NAMES = st.sampled_from(["bluesky_reply", "memory_search"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(ToolCall, id=IDS, name=NAMES, input=st.dictionaries(WORDS, JSON, max_size=3), malformed=WORDS)
FLAGS = {"is_error": st.booleans(), "is_held": st.booleans()}
ANSWERS = st.builds(ToolAnswer, tool_use_id=IDS, name=NAMES, content=WORDS, **FLAGS)
IMAGES = st.builds(Image, key=st.just("data:image/png;base64,AAAA"), mime=st.just("image/png"), alt=WORDS)
BLOCKS: st.SearchStrategy[Block] = st.builds(Text, text=WORDS) | IMAGES | CALLS | ANSWERS
MESSAGES = st.builds(
    Message, role=st.sampled_from(["user", "assistant"]), content=WORDS | st.lists(BLOCKS, max_size=5).map(tuple)
)


def rows_of(
    said: Sequence[Message], *, provenance: Provenance = Provenance.OWNER, tokens: int | None = None
) -> list[MessageRow]:
    """Return the rows as they would be read back, a minute apart, each of `tokens`; None estimates the tokens."""
    split = [part for message in said for part in parts(message)]
    return [
        MessageRow(
            session_id="s",
            seq=seq,
            role=role,
            message=message,
            tokens=tokens_of(message, len) if tokens is None else tokens,
            provenance=provenance,
            created_at=f"2026-01-05T12:{seq % 60:02}:00.250Z",
        )
        for seq, (role, message) in enumerate(split, 1)
    ]


def normal(message: Message) -> list[Message]:
    """Return `message` as it is read back: answers apart from other words, and a single text as a plain string."""
    return joined((role, Message(part.role, _plain(part.content))) for role, part in parts(message))


def joined(rows: Iterable[tuple[Role, Message]]) -> list[Message]:
    """Return the messages in rows: the answers to one round of calls are one message again."""
    messages: list[Message] = []
    previous: Role | None = None
    for role, message in rows:
        if role == previous == "toolResult":
            messages[-1] = Message("user", (*blocks(messages[-1]), *blocks(message)))
        else:
            messages.append(message)
        previous = role
    return messages


def _plain(content: str | tuple[Block, ...]) -> str | tuple[Block, ...]:
    return content[0].text if len(content) == 1 and isinstance(content[0], Text) else content


def asks(*names: str) -> Message:
    """Return a message in which the model calls tools; each call has its name as id."""
    return Message("assistant", tuple(ToolCall(name, name, {"of": name}) for name in names))


def answers(*names: str) -> Message:
    """Return the answers to these calls."""
    return Message("user", tuple(ToolAnswer(name, name, f"what {name} printed") for name in names))
