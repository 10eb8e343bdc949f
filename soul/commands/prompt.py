"""`soul prompt`: what the model is told before anything else, part by part, and what had no room.

Reads what lies on this machine and what its services keep, and changes nothing; the SOUL may be awake or not.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from common.clock import SystemClock
from common.settings import load_settings
from common.wording import group, number, part_name
from modules.runtime.home import Home
from soul.commands.options import PromptAudience
from soul.commands.prompt_preview import Preview, look
from soul.terminal.output import write_json, write_lines


def run_prompt(
    root: Path,
    audience: Annotated[
        PromptAudience, typer.Option("--for", help="Who reads the answer: you, Bluesky or the room.")
    ] = PromptAudience.OWNER,
    *,
    text: Annotated[bool, typer.Option("--text", help="Print the whole text instead of the sizes.")] = False,
    about: Annotated[str, typer.Option("--about", help="Words of the turn, to recall memories by.")] = "",
    as_json: bool,
) -> None:
    """Print it for a turn that is about these words, "" for words that nobody knows yet.

    With `text`, what only a turn knows goes to standard error. Raises `ConfigError` without settings, `IdentityError`
    without SOUL.md.
    """
    settings = load_settings(root)
    preview = asyncio.run(look(settings, Home.at(root, settings.memory_dir), audience.value, about, SystemClock()))
    if as_json:
        write_json(_as_json(preview, text=text))
    elif text:
        write_lines(*preview.prompt.text.splitlines())
        write_lines(*_beside(preview), to=sys.stderr)
    else:
        write_lines(*_lines(preview), *_beside(preview))


def _as_json(preview: Preview, *, text: bool) -> dict[str, Any]:
    prompt = preview.prompt
    found: dict[str, Any] = {
        "for": preview.audience,
        "budget": preview.budget,
        "tokens": sum(part.tokens for part in prompt.parts),
        "parts": [asdict(part) for part in prompt.parts],
        "truncated": list(prompt.truncated),
        "dropped": list(prompt.dropped),
        "memories": list(prompt.memories),
        "historyTokens": preview.history,
        "unknown": list(preview.unknown),
        "notices": [asdict(notice) for notice in preview.notices],
    }
    return found | {"blocks": [asdict(block) for block in prompt.blocks]} if text else found


def _lines(preview: Preview) -> list[str]:
    prompt = preview.prompt
    total = sum(part.tokens for part in prompt.parts)
    lines = [f"Prompt for {preview.audience}: about {number(total)} of at most {number(preview.budget)} tokens"]
    lines += [
        f"  {group(part.group):<8}  {number(part.tokens):>7} tokens  {number(part.chars):>9} characters"
        f"  {part_name(part.name)}" + ("  (cut)" if part.name in prompt.truncated else "")
        for part in prompt.parts
    ]
    lines += [f"  left out: {part_name(name)}" for name in prompt.dropped]
    if preview.history is None:
        return [*lines, f"  {preview.problem}"]
    return [*lines, f"  {number(preview.history)} tokens remain for tools and conversation"]


def _beside(preview: Preview) -> list[str]:
    """What is amiss, and what cannot be known here."""
    amiss = [f"  {said.summary}" + (f" ({said.reason})" if said.reason else "") for said in preview.notices]
    return [*amiss, *(f"  {_named(line)}" for line in preview.unknown)]


def _named(line: str) -> str:
    name, colon, rest = line.partition(": ")
    return f"{part_name(name)}{colon}{rest}"
