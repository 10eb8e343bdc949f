"""`soul mcp`: serves a home to the owner's other tools by the Model Context Protocol over standard input and output.

The answers are the JSON of the commands, without secrets, and with untrusted text in frames. Nothing is changed unless
the owner allowed it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from common.clock import Clock, SystemClock
from common.errors import SoulError
from common.installation import command_for_extra
from common.redact import Redactor
from common.settings import Settings
from common.text.untrusted import clean_value, one_line
from common.version import __version__
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.services.day.gathering import DayReader
from modules.services.explanation import rendering
from modules.services.explanation.drafts import draft_fields, in_words
from modules.services.memory.admission import Query
from modules.services.memory.recall import FOREIGN
from modules.services.outbox import approval
from modules.services.schedules import schedules_in
from modules.services.skills.skills import Framer, Skills
from soul.command_table import rows_at
from soul.commands.at_hand import at_hand
from soul.commands.drafts import decide, leaving_of
from soul.commands.memory import ask_memories
from soul.commands.options import DraftAction
from soul.commands.rituals import fields
from soul.commands.status import look
from soul.resources import SKILLS

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.tools import Tool as ServedTool

SKILL = "mcp-tools"
_DEADLINE_S = 60.0
_MOST_FOUND = 20
_MOST_ERROR_CHARS = 500

Answer = dict[str, Any]
Tool = Callable[..., Awaitable[Answer]]

_THEIRS: Mapping[str, Mapping[str, Sequence[str | int]]] = {
    "status": {"commitments": ("what",)},
    "today": {
        "orders": ("reason",),
        "wishes": (2,),
        "refused": ("reason",),
        "sent_back": ("reason",),
        "dropped": ("what", "reason"),
        "cases": ("summary", "reason"),
        "commitments": ("open", "kept", "given_up"),
        "learned": ("subjects", "self_changes"),
        "readings": ("question", "finding"),
        "own_time": (1, 2),
        "troubles": ("what", "remedy"),
    },
}
"""By tool and part of its answer, the fields that may hold words of others, unless the part says that it does not."""


def run_mcp(
    root: Path,
    *,
    allow_acts: Annotated[
        bool, typer.Option("--allow-acts", help="Let these tools approve and reject drafts in your name.")
    ] = False,
) -> None:
    """Serve until standard input ends. Raises `SoulError` if the extra is not installed, or there is no SOUL."""
    if find_spec("mcp") is None:
        raise SoulError(
            "The Model Context Protocol is not installed",
            remedy=f"Install it beside this program: `{command_for_extra('mcp')}`.",
        )
    settings, home = at_hand(root)
    server = _server(HomeTools(home, settings, SystemClock()), allow_acts=allow_acts)
    asyncio.run(server.run_stdio_async())


@dataclass(frozen=True, slots=True)
class HomeTools:
    """The tools for one home, whether the SOUL is awake or not: a method `run_NAME` for each.

    Each raises `SoulError`.
    """

    home: Home
    settings: Settings
    clock: Clock

    async def run_status(self) -> Answer:
        return await asyncio.to_thread(look, self.home)

    async def run_today(self, day: str = "") -> Answer:
        reader = DayReader(self.settings, self.home, self.clock)
        return asdict(await asyncio.to_thread(reader.read, day))

    async def run_schedule(self) -> Answer:
        return {"schedules": await asyncio.to_thread(self._schedules)}

    async def run_why(self, what: str) -> Answer:
        return await asyncio.to_thread(self._story, what)

    async def run_memory_search(self, words: str, limit: Annotated[int, Field(ge=1, le=_MOST_FOUND)] = 8) -> Answer:
        query, now = Query(words, (), limit=limit), self.clock.now()
        found = await ask_memories(self.home, lambda store: store.search(query, now))
        return {"memories": [asdict(one) for one in found]}

    async def run_drafts(self) -> Answer:
        return {"drafts": await asyncio.to_thread(self._drafts)}

    async def run_draft(self, draft_id: str) -> Answer:
        (one,) = await asyncio.to_thread(self._drafts, draft_id)
        return one

    async def run_approve(self, draft_id: str) -> Answer:
        return await self._decide(DraftAction.APPROVE, draft_id, "")

    async def run_reject(self, draft_id: str, reason: str = "") -> Answer:
        return await self._decide(DraftAction.REJECT, draft_id, reason)

    def _schedules(self) -> list[Answer]:
        with reading(self.home.database) as connection:
            return [fields(one) for one in schedules_in(connection)]

    def _story(self, what: str) -> Answer:
        with reading(self.home.database) as connection:
            return rendering.as_json(rendering.story_of(connection, what))

    def _drafts(self, draft_id: str | None = None) -> list[Answer]:
        with reading(self.home.database) as connection:
            found = approval.waiting(connection) if draft_id is None else [approval.find(connection, draft_id)]
            return [draft_fields(one, self.clock.now()) for one in in_words(connection, found)]

    async def _decide(self, action: DraftAction, draft_id: str, reason: str) -> Answer:
        (one,) = await decide(self.settings, self.home, action, [draft_id], reason)
        when = leaving_of(self.settings, self.home, [one]) if action is DraftAction.APPROVE else ""
        return {"id": one.intent.id, "state": one.intent.state, **({"leaves": when} if when else {})}


def _frame_draft(draft: Answer, framer: Framer) -> None:
    if post := draft.get("answers"):
        post["text"] = framer.frame("post", author=f"@{post['handle']}", uri=draft["target"], text=post["text"])


def _frame_story(story: Answer, framer: Framer) -> None:
    if post := story["trigger"]:
        kind = "post" if post["uri"].startswith("at://") else "message"
        post["text"] = framer.frame(kind, author=f"@{post['author']}", uri=post["uri"], text=post["text"])
    for answer in (one for step in story["coding"] for one in step["answers"] or ()):
        answer["content"] = framer.frame("reading", author="", uri=story["asked"], text=answer["content"])


def _frame_memory(memory: Answer, framer: Framer) -> None:
    if memory["trust"] in FOREIGN:
        author, uri = f"a {memory['trust']}", memory["source"]
        for name in ("subject", "body"):
            memory[name] = framer.frame("reading", author=author, uri=uri, text=memory[name])


def _frame_fields(part: Any, names: Sequence[str | int], framer: Framer) -> None:  # noqa: ANN401 - JSON
    """Frame these fields of a part, or of each in a list, except of one whose `is_others`, or last item, is false."""
    for one in part if isinstance(part, list) else [part]:
        is_others = one[-1] if isinstance(one, list) else one.get("is_others")
        for name in names if is_others is not False else ():
            one[name] = _framed(one[name], framer)


def _framed(value: Any, framer: Framer) -> Any:  # noqa: ANN401 - a text, or a list of texts
    if isinstance(value, list):
        return [_framed(one, framer) for one in value]
    return value and framer.frame("reading", author="", uri="", text=value)


def _frame(tool: str, answer: Answer, framer: Framer) -> None:
    """Put untrusted text in the cleaned answer of `tool` into frames: posts, memories, and what rests on them."""
    for name, fields_ in _THEIRS.get(tool, {}).items():
        _frame_fields(answer.get(name, []), fields_, framer)
    if answer.get("is_unasked"):
        answer["drafts"] = _framed(answer["drafts"], framer)
    match tool:
        case "why":
            _frame_story(answer, framer)
        case "draft":
            _frame_draft(answer, framer)
        case "drafts" | "status":
            for draft in answer.get("drafts", ()):
                _frame_draft(draft, framer)
        case "memory_search":
            for memory in answer["memories"]:
                _frame_memory(memory, framer)


def _server(tools: HomeTools, *, allow_acts: bool) -> MCPServer[Any]:
    from mcp.server import MCPServer  # noqa: PLC0415 - an optional library
    from mcp.server.mcpserver.tools import Tool as ServedTool  # noqa: PLC0415 - the same
    from mcp_types import ToolAnnotations  # noqa: PLC0415 - the same

    skills = Skills.load(SKILLS)
    soul = clean_value(tools.settings.agent_name)
    instructions = skills.render(SKILL, "Instructions", name=soul).strip()
    # NOTE(self): if there is a handler, the library sets up none. Its own needs rich's tracebacks, which the command
    # line blocks: the first error that it logged would end the process.
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    looks, acts = rows_at("mcp"), rows_at("mcp acts") if allow_acts else {}
    clean, rng = Redactor(tools.settings.secrets).value, random.Random()
    served = [
        ServedTool.from_function(
            _answering(name, getattr(tools, f"run_{name}"), clean, lambda: Framer(skills, rng)),
            name=name,
            description=skills.subsection(SKILL, "Descriptions", name).strip(),
            annotations=ToolAnnotations(read_only_hint=name in looks, open_world_hint=name in acts),
        )
        for name in (*looks, *acts)
    ]
    for one in served:
        _refuse_unknown_arguments(one)
    return MCPServer("soul", instructions=instructions, version=__version__, log_level="WARNING", tools=served)


def _refuse_unknown_arguments(tool: ServedTool) -> None:
    """Make a tool refuse unknown arguments. The library would ignore a misspelt one, and answer without it."""
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)


def _answering(name: str, tool: Tool, clean: Callable[[Any], Any], framer: Callable[[], Framer]) -> Tool:
    """Return `tool` with a deadline; its answers and errors contain no secrets and no invisible characters.

    Untrusted text in each answer is framed by a new `framer`.
    """
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - an optional library

    @wraps(tool)
    async def answer(*args: Any, **given: Any) -> Answer:  # noqa: ANN401 - whatever the tool takes
        try:
            async with asyncio.timeout(_DEADLINE_S):
                answered: Answer = clean_value(clean(await tool(*args, **given)))
            _frame(name, answered, framer())
        except SoulError as error:
            told = f"{error}. {error.remedy}" if error.remedy else str(error)
            raise ToolError(one_line(clean(told), _MOST_ERROR_CHARS)) from error
        except TimeoutError:
            raise ToolError(f"No answer within {_DEADLINE_S:.0f} s") from None
        return answered

    return answer
