"""Who asks a model, for a turn, a summary or the words of a commitment, always with a prompt of the prompter; one
probe; and one room that asks for a single word about a single message, and tells nothing of the SOUL."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.project import ROOT

ASKS = {
    "modules/runtime/llm/gateway.py",
    "modules/services/agent/turn/loop.py",
    "modules/services/agent/sessions/distiller.py",
    "modules/services/commitments/writer.py",
    "modules/services/peers/voice.py",
    "modules/lives/space/verdicts.py",
    "soul/commands/doctor.py",
}
PROMPTS = {
    "modules/services/agent/owner/owner.py",
    "modules/lives/bluesky/respond.py",
    "modules/lives/bluesky/expression.py",
    "modules/services/commitments/writer.py",
    "modules/services/peers/voice.py",
    "modules/lives/space/decide.py",
    "modules/services/agent/turn_services.py",
    "soul/commands/walk.py",
}


def files() -> list[Path]:
    return [path for floor in ("modules", "soul", "local_tools") for path in sorted((ROOT / floor).rglob("*.py"))]


def calls(path: Path, *names: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_nobody_asks_a_model_past_the_prompter() -> None:
    asking = {path.relative_to(ROOT).as_posix() for path in files() if calls(path, "chat", "chat_with_tools")}
    assert asking == ASKS
    running = {path.relative_to(ROOT).as_posix() for path in files() if calls(path, "run_turn")}
    prompting = {path.relative_to(ROOT).as_posix() for path in files() if calls(path, "prompt")}
    assert running
    assert running <= prompting
    assert prompting >= PROMPTS
