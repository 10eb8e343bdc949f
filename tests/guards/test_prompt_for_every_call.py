"""Who asks a model, for a turn, a summary or the words of a commitment, always with a prompt of the prompter; one
probe; two that ask for a single word about a single text, and tell nothing of the SOUL; and one that shows the part of
SELF.md on its voice, with texts of ours to put into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.project import product_trees

pytestmark = pytest.mark.guard

ASKS = {
    "modules/runtime/llm/gateway.py",
    "modules/services/agent/turn/runner.py",
    "modules/services/sessions/archives.py",
    "modules/services/coding/agent.py",
    "modules/services/commitments/writer.py",
    "modules/services/own_feed/announcement.py",
    "modules/services/agent/one_sentence.py",
    "modules/services/agent/verdicts.py",
    "modules/lives/rituals/writing.py",
    "modules/lives/tasks/documents/compose.py",
    "modules/lives/tasks/review/judge.py",
    "modules/services/plans/compose.py",
    "modules/services/plans/missing.py",
    "modules/services/voice_phrases/regenerate.py",
    "modules/services/workspaces/health.py",
    "soul/commands/doctor.py",
}


def callers(*names: str) -> set[str]:
    return {
        path
        for path, tree in product_trees("modules", "soul", "local_tools").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names
    }


def test_nobody_asks_a_model_past_the_prompter() -> None:
    assert callers("chat", "chat_with_tools") == ASKS
    running, prompting = callers("run_turn"), callers("prompt")
    assert running
    assert running <= prompting


FACTS_IN = {"chat": "facts", "chat_with_tools": "facts", "run_turn": "about"}
"""The methods that ask a model, and the argument that tells what the request is about."""


def asking() -> Iterator[tuple[str, bool]]:
    """Each call of a method that asks a model: where it stands, and whether it tells what it is about."""
    for path, tree in product_trees("modules", "soul").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FACTS_IN:
                told = any(keyword.arg == FACTS_IN[node.func.attr] for keyword in node.keywords)
                yield f"{path}:{node.lineno}", told


def test_every_request_tells_what_it_is_about_but_for_the_probe_of_the_doctor() -> None:
    calls = dict(asking())
    assert len(calls) > 9
    assert [where.partition(":")[0] for where, told in calls.items() if not told] == ["soul/commands/doctor.py"]
