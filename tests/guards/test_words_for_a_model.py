"""Every word for a model is in a skill: code describes no field of a tool, and answers no call with a sentence.

The syntax trees are checked: string constants count; docstrings and text for the terminal alone do not.

All requests to a model (turns, summaries, texts of commitments) use a prompt of the prompter, except for one probe, two
that ask for a single word about a single text and say nothing of the SOUL, and one that shows the part of SELF.md on
its voice, with texts of ours to rephrase. Each operational text that can be rephrased in the SOUL's voice is used
somewhere. No branch of the product reads a sentence written for people: decisions carry a code for that.
"""

import ast
import json
from collections.abc import Iterator

import pytest

from modules.services.skills.contracts import derived
from modules.services.skills.skills import CONTRACTS
from modules.services.voice_phrases import VOICED
from tests.project import ROOT, product_trees

pytestmark = pytest.mark.guard


PRODUCT = ("adapters", "common", "local_tools", "modules", "soul")
ANSWERING = ("local_tools", "modules/services/agent/tools", "modules/services/agent/turn")
"""The folders that make the answers of tools."""
MOST_WORDS = 4
EXCEPTIONS = {
    "no answer that may leave, twice": "for the journal, in the outcome of a result",
    "no comment that may leave, twice": "for the journal, in the outcome of a result",
    "the registry offers this tool in turns with its subject only": "an error of ours: no model reads it",
    "the model chose nothing that works": "for the journal, where no tool ended a turn",
    "two tools have the same name": "an error of ours: no model reads it",
    "waits for the owner's approval:": "for the journal, in the outcome of a result",
    "other people's words were read before it": "told with what waits for the owner's approval",
}


def described(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
            yield from (word.lineno for word in node.keywords if word.arg in {"description", "title", "examples"})


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            text = node.value.strip()
            if len(text.split()) > MOST_WORDS:
                yield node.lineno, text


def test_no_field_of_a_tool_is_described_in_code() -> None:
    assert [f"{path}:{line}" for path, tree in product_trees(*PRODUCT).items() for line in described(tree)] == []


def test_no_tool_answers_with_a_sentence_that_stands_in_code() -> None:
    found = [(path, line, text) for path, tree in product_trees(*ANSWERING).items() for line, text in sentences(tree)]
    assert [f"{path}:{line}: {text}" for path, line, text in found if text not in EXCEPTIONS] == []
    assert EXCEPTIONS.keys() <= {text for _, _, text in found}


def test_no_public_text_stands_in_code_where_they_are_made() -> None:
    made = product_trees("modules/services/commitments", "adapters/github")
    for path in ("modules/services/commitments/texts.py", "adapters/github/types.py"):
        assert list(sentences(made[path])) == []


def test_both_would_be_found() -> None:
    tree = ast.parse('"""Doc of a module, which is long."""\nx: str = Field(description="What it is.")\n')
    assert [*described(tree)] == [2]
    assert [*sentences(ast.parse('def f():\n    """A docstring."""\n    return f"no such post is in {a}"\n'))] == [
        (3, "no such post is in")
    ]


def test_the_contracts_that_ship_are_those_of_the_pages() -> None:
    skills = ROOT / "skills"
    assert json.loads((skills / CONTRACTS).read_text()) == derived(skills), (
        "run python -m modules.services.skills.contracts skills"
    )


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
    "modules/lives/tasks/review/judge.py",
    "modules/services/voice_phrases.py",
    "modules/services/skills/questions.py",
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
"""The methods that ask a model, with the argument that says what the request is about."""


def asking() -> Iterator[tuple[str, bool]]:
    """Yield the place of each call that asks a model, and whether the call says what it is about."""
    for path, tree in product_trees("modules", "soul").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FACTS_IN:
                told = any(keyword.arg == FACTS_IN[node.func.attr] for keyword in node.keywords)
                yield f"{path}:{node.lineno}", told


def test_every_request_tells_what_it_is_about_but_for_the_probe_of_the_doctor() -> None:
    calls = dict(asking())
    assert len(calls) > 9
    assert [where.partition(":")[0] for where, told in calls.items() if not told] == ["soul/commands/doctor.py"]


DEFINED_IN = "modules/services/voice_phrases.py"


def unsaid(keys: tuple[str, ...]) -> list[str]:
    """Return those keys that no module names, in full or by the group at the beginning of an f-string."""
    trees = [tree for path, tree in product_trees().items() if path != DEFINED_IN]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    whole = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    begun = {
        first.value
        for node in nodes
        if isinstance(node, ast.JoinedStr) and isinstance(first := node.values[0], ast.Constant)
    }
    return [key for key in keys if key not in whole and f"{key.rpartition('.')[0]}." not in begun]


def test_each_phrase_that_a_voice_can_change_is_said() -> None:
    assert unsaid(tuple(key for group in VOICED for key in group)) == []
    assert unsaid(("github.never_said",)) == ["github.never_said"]


_PROSE = frozenset({"reason", "error", "summary", "detail", "why", "why_not"})
_SEARCHES = frozenset({"startswith", "endswith", "find", "index", "count", "removeprefix", "removesuffix"})
_MATCHES = frozenset({"search", "match", "fullmatch", "findall", "finditer"})


def _prose_read(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield each expression in which such a sentence is compared or searched, even through a variable."""
    yield from _read_in(tree, frozenset())
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            held = _holders(scope)
            yield from (found for found in _read_in(scope, held) if isinstance(found, ast.Name))


def _read_in(tree: ast.AST, held: frozenset[str]) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                yield from (side for side in (left, *others) if _is_prose(side, held) and not _asks_for_none(node))
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _SEARCHES and _is_prose(value, held):
                yield value
            case ast.Call(func=ast.Attribute(attr=attr), args=arguments) if attr in _MATCHES:
                yield from (argument for argument in arguments if _is_prose(argument, held))
            case ast.Match(subject=subject) if _is_prose(subject, held):
                yield subject


def _is_prose(node: ast.expr, held: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in held
    return isinstance(node, ast.Attribute) and node.attr in _PROSE


def _asks_for_none(node: ast.Compare) -> bool:
    return all(isinstance(one, ast.Is | ast.IsNot) for one in node.ops)


def _holders(scope: ast.AST) -> frozenset[str]:
    """Return the variables of a function to which such a sentence is assigned."""
    names: set[str] = set()
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value) if _is_prose(value, frozenset()):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if _is_prose(value, frozenset()):
                names.add(name)
    return frozenset(names)


def test_no_branch_compares_or_searches_a_sentence() -> None:
    found = [(path, node) for path, tree in product_trees().items() for node in _prose_read(tree)]
    assert [f"{path}:{node.lineno}: {ast.unparse(node)}" for path, node in found] == []


@pytest.mark.parametrize(
    "source",
    [
        "if verdict.reason == 'too soon': pass",
        "if 'is over' in outcome.error: pass",
        "x = said.reason.startswith('no')",
        "match decision.reason:\n    case 'a': pass",
        "if re.search('soon', verdict.reason): pass",
        "if _SOON.fullmatch(outcome.error): pass",
        "def f(one):\n    why = one.reason\n    return why == 'too soon'",
        "def f(one):\n    if (why := one.reason) and 'soon' in why: pass",
    ],
)
def test_such_a_branch_is_found(source: str) -> None:
    assert list(_prose_read(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "if verdict.reason: pass",
        "def f(one):\n    why = one.reason\n    return why or 'none was given'",
        "def f(one):\n    error = one.error\n    return error is None",
        "if verdict.code == 'too_soon': pass",
    ],
)
def test_a_sentence_that_is_only_passed_on_is_no_branch(source: str) -> None:
    assert list(_prose_read(ast.parse(source))) == []
