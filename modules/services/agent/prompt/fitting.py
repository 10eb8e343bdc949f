"""Fits a prompt into its budget of tokens: which parts go in by priority, and what is cut. Pure.

The same input gives the same bytes, because a provider finds a prompt in its cache only if its beginning is unchanged.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from common.constants import LLM_LEAST_OUTPUT_TOKENS
from common.errors import PolicyBlocked
from common.provenance import Provenance
from common.text.markdown import is_meaningful, split_sections
from common.text.strings import estimate_roughly
from common.wording import number
from modules.runtime.llm.dialect import GROUPS, CacheGroup, Message, PromptBlock, Text, ToolAnswer

Audience = Literal["owner", "bluesky", "space"]
"""Who may read the result of a turn. Only with `owner` may private things be in the prompt."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One candidate part of the prompt.

    Attributes:
        name: the name that the owner knows, for example `SOUL.md`.
        content: its text as the prompt shows it.
        priority: lower goes first, and is cut last.
        group: how often it changes.
        whole: never cut and never dropped, whatever the budget.

    """

    name: str
    content: str
    priority: float
    group: CacheGroup
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """A text cut at its headings: complete sections from the top, and how many were left out."""

    text: str
    sections_left_out: int


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """The result of `assemble`.

    Attributes:
        included: the parts of the prompt, by group and then by priority; truncated ones in their short form.
        truncated: names of the parts that were cut.
        dropped_files: names of the parts that had no room.
        tokens: estimated tokens of each included part.
        over_budget: whether the parts that must be whole exceed the budget.

    """

    included: tuple[PromptFile, ...]
    truncated: tuple[str, ...] = ()
    dropped_files: tuple[str, ...] = ()
    tokens: dict[str, int] = field(default_factory=dict)
    over_budget: bool = False

    @property
    def total(self) -> int:
        """Estimated tokens in all."""
        return sum(self.tokens.values())


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of a prompt for the journal: its name, its length in characters, and the first digits of its SHA-256."""

    name: str
    chars: int
    sha256: str = ""
    tokens: int = 0
    group: str = ""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The system prompt, and the parts that it was built from."""

    blocks: tuple[PromptBlock, ...]
    parts: tuple[PromptPart, ...]
    dropped: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()
    memories: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """All of it as one text."""
        return "\n\n".join(block.text for block in self.blocks if block.text)


@dataclass(frozen=True, slots=True)
class ToldBefore:
    """What was said with a person before, as text for a prompt; "" for nothing.

    `provenance` is that of the least trusted words in it; None if it holds only the SOUL's own.
    """

    text: str = ""
    provenance: Provenance | None = None


Estimate = Callable[[str], int]
CutNote = Callable[[int], str]

HEARTBEAT = "HEARTBEAT.md"
_LEAST_WORTH_CUTTING = 500
_CONTRIBUTORS_NAMED = 3


def assemble(
    files: Iterable[PromptFile],
    *,
    budget: int,
    estimate: Estimate = estimate_roughly,
    cut_note: CutNote | None = None,
) -> BootstrapResult:
    """Choose the parts that fit.

    Args:
        files: in any order. Blank ones are skipped, and so is a HEARTBEAT.md without content.
        budget: in tokens. Only `whole` parts may exceed it, and then no other part is included.
        estimate: returns the tokens of a text; by default a quarter of its characters.
        cut_note: returns the sentence for a cut file, given how many sections were left out; None for no sentence.

    """
    wanted = sorted(filter(_says_something, files), key=lambda file: (file.priority, file.name))
    sizes = [estimate(file.content) for file in wanted]
    room = budget - sum(size for file, size in zip(wanted, sizes, strict=True) if file.whole)
    over_budget, full = room < 0, False
    included: list[PromptFile] = []
    truncated: list[str] = []
    dropped: list[str] = []
    tokens: dict[str, int] = {}
    for whole_file, whole_size in zip(wanted, sizes, strict=True):
        file, size = whole_file, whole_size
        if not file.whole and (full or size > room):
            cut = None if full else _cut(file, room, estimate, cut_note)
            full = True
            if cut is None:
                dropped.append(file.name)
                continue
            file, size = cut, estimate(cut.content)
            truncated.append(file.name)
        if not file.whole:
            room -= size
        included.append(file)
        tokens[file.name] = tokens.get(file.name, 0) + size
    return BootstrapResult(
        included=tuple(sorted(included, key=lambda file: (GROUPS.index(file.group), file.priority, file.name))),
        truncated=tuple(truncated),
        dropped_files=tuple(dropped),
        tokens=tokens,
        over_budget=over_budget,
    )


def truncate_sections(markdown: str, max_tokens: int, estimate: Estimate, cut_note: CutNote | None = None) -> Truncated:
    """Keep the text before the first `## ` heading, and then as many whole sections from the top as fit.

    Headings in code fences do not count. The note counts towards the room. If not even the beginning fits, the text is
    empty.
    """
    if estimate(markdown) <= max_tokens:
        return Truncated(markdown, 0)
    preamble, sections = split_sections(markdown)

    def keeping(count: int) -> str:
        kept = "".join((preamble, *sections[:count])).rstrip()
        left_out = len(sections) - count
        return f"{kept}\n\n{cut_note(left_out)}" if kept and left_out and cut_note else kept

    def fits(count: int) -> bool:
        return estimate(keeping(count)) <= max_tokens

    low, high = 0, len(sections)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if not fits(low):
        return Truncated("", len(sections))
    return Truncated(keeping(low), len(sections) - low)


def history_budget(
    *, context_tokens: int, bootstrap_tokens: int, tool_tokens: int, max_output_tokens: int, parts: Iterable[PromptPart]
) -> int:
    """Return how many tokens of conversation fit.

    Raises:
        PolicyBlocked: the rest of the request alone is too large; the message names its largest parts.

    """
    history = context_tokens - bootstrap_tokens - tool_tokens - max_output_tokens
    if history >= 0:
        return history
    sizes = [(part.tokens, part.name) for part in parts]
    sizes += [(tool_tokens, "tool definitions"), (max_output_tokens, "room for the answer")]
    largest = sorted(sizes, key=lambda item: (-item[0], item[1]))[:_CONTRIBUTORS_NAMED]
    raise PolicyBlocked(
        f"The prompt needs {number(-history)} tokens more than the {number(context_tokens)} that the model takes;"
        " the largest parts: " + ", ".join(f"{name} ({number(tokens)})" for tokens, name in largest if tokens),
        remedy="Shorten what is named, lower BOOTSTRAP_MAX_TOKENS, or choose a model with a larger context "
        "(AI_GATEWAY_MODEL, CONTEXT_TOKENS).",
    )


def room_beside(parts: Sequence[PromptPart], *, context_tokens: int, tool_tokens: int) -> int:
    """Return `history_budget` for a prompt of these parts and the shortest answer, with the same errors."""
    return history_budget(
        context_tokens=context_tokens,
        bootstrap_tokens=sum(part.tokens for part in parts),
        tool_tokens=tool_tokens,
        max_output_tokens=LLM_LEAST_OUTPUT_TOKENS,
        parts=parts,
    )


def _says_something(file: PromptFile) -> bool:
    return is_meaningful(file.content) if file.name == HEARTBEAT else bool(file.content.strip())


def _cut(file: PromptFile, room: int, estimate: Estimate, cut_note: CutNote | None) -> PromptFile | None:
    """Return `file` cut to `room` tokens, or None if what is left is not worth including."""
    if room < _LEAST_WORTH_CUTTING:
        return None
    cut = truncate_sections(file.content, room, estimate, cut_note)
    note = cut_note(cut.sections_left_out) if cut_note else ""
    if not is_meaningful(cut.text.removesuffix(note)):
        return None
    return PromptFile(file.name, cut.text, file.priority, file.group)


RULE = "---\n\n"
"""The separator between any two parts of a prompt, on a line of its own."""


def placed(
    blocks: Sequence[PromptBlock], messages: Sequence[Message], *, may_go_on: bool = False
) -> tuple[tuple[PromptBlock, ...], tuple[Message, ...]]:
    """Return the blocks and the messages with the dynamic blocks moved into the last message in which a user speaks.

    Tool answers may follow that message if a crash interrupted the turn. `may_go_on` says whether a later turn will
    show these messages, too; a single message that no later turn shows leaves the blocks where they are.
    """
    changing = "\n\n".join(block.text for block in blocks if block.group == "dynamic")
    place = next((at for at in reversed(range(len(messages))) if _speaks(messages[at])), None)
    if place is None or not changing or (len(messages) == 1 and not may_go_on):
        return tuple(blocks), tuple(messages)
    said = messages[place]
    words = (Text(said.content),) if isinstance(said.content, str) else said.content
    stable = tuple(block for block in blocks if block.group != "dynamic")
    shown = Message(said.role, (Text(f"{changing.removeprefix(RULE)}\n\n{RULE}"), *words))
    return stable, (*messages[:place], shown, *messages[place + 1 :])


def _speaks(message: Message) -> bool:
    """Return whether a message holds the user's own words, not only answers of tools."""
    return message.role == "user" and not all(isinstance(one, ToolAnswer) for one in message.content)
