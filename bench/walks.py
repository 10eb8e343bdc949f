"""How straight the way of data is: follows one parameter through the calls that pass it on, and counts the files.

    python bench/walks.py                            the walks of `WALKS`; exit code 1 where one is above its limit
    python bench/walks.py FILE:FUNCTION:PARAMETER    one walk, step by step
    python bench/walks.py --root DIR FILE:...        the same in another checkout

Reads the source only; nothing of the program runs. A value is followed under each of its names: the parameter, its
attributes and items, what is unpacked from it, an object that holds it, and what a function returns of it.

- A *stay* is a stretch of calls within one file; a *return* is a stay in a file that was left before.
  `stays = files + returns`.
- Branches count one after the other, in the order of the text. A function is entered once; a second call of it still
  counts as a stay in its file.
- A method is found by the annotated class of its receiver. The walk stops at a call whose target is chosen when the
  program runs: a method that several classes define, or a function that is held in a variable.
- The walk does not enter libraries, nor `common/`, the project's own library of pure functions.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.calls import Definition, Source

NOT_ENTERED = "common/"
COPYING = {"dict", "frozenset", "list", "replace", "set", "sorted", "tuple"}
PICKING = {"enumerate", "iter", "max", "min", "next", "reversed", "zip"}
"""Functions of the standard library whose result is, or holds, what they are given: `COPYING` and `PICKING`."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a walk may come to."""

    what: str
    start: str
    stays: int
    returns: int


WALKS = (
    Limit("a notification that is read", "modules/lives/bluesky/handle.py:Handler._take_on:item", 39, 15),
    Limit("one that needs no reading", "modules/lives/bluesky/unread.py:Unread.disposition_of:item", 15, 8),
    Limit("a proposed action", "modules/services/outbox/outbox.py:Outbox.submit:action", 7, 3),
    Limit("a batch of room talk", "modules/lives/space/act.py:Participation._check:batch", 40, 22),
    Limit("what is said in a room", "modules/lives/space/speak.py:Speaker.say:waiting", 16, 4),
    Limit("a message of the owner", "modules/services/agent/owner/owner.py:OwnerTalk._answer:message", 24, 10),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A call that passes the value on: the function, and the parameters that take it."""

    path: str
    function: str
    parameters: tuple[str, ...]


class Walk:
    """The way of one value; `steps` are the calls that passed it on, in their order."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.steps: list[Step] = []
        self._returned: dict[Definition, bool] = {}

    @property
    def stays(self) -> list[str]:
        """The path of the file of each stay."""
        paths = [step.path for step in self.steps]
        return [path for at, path in enumerate(paths) if at == 0 or paths[at - 1] != path]

    @property
    def returns(self) -> int:
        """How many stays were in a file that had been left before."""
        return len(self.stays) - len(set(self.stays))

    def enter(self, function: Definition, parameters: Iterable[str]) -> bool:
        """Follow the value into a function; return whether the function gives it back."""
        taken = tuple(sorted(parameters))
        name = f"{function.owner}.{function.node.name}".lstrip(".")
        self.steps.append(Step(function.path, name, taken))
        if function not in self._returned:
            self._returned[function] = False
            body = _Body(self, function, set(taken))
            body.run(function.node.body)
            self._returned[function] = body.gives_back
        return self._returned[function]


class _Body:
    """Reads the body of one function in its order; `names` are those of the value so far."""

    def __init__(self, walk: Walk, function: Definition, names: set[str]) -> None:
        self._walk = walk
        self._function = function
        self._names = names
        self.gives_back = False

    def run(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                for target, holds in zip(targets, [self._holds(value) for value in values], strict=True):
                    self._bind(target, holds=holds)
            case ast.Assign(targets=targets, value=value):
                holds = self._holds(value)
                for target in targets:
                    self._bind(target, holds=holds)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                self._bind(target, holds=self._holds(value))
            case ast.Return(value=ast.expr() as value):
                self.gives_back |= self._holds(value)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._bind(target, holds=self._holds(value))
                self.run((*statement.body, *statement.orelse))
            case ast.Match(subject=subject, cases=cases):
                self._cases(cases, holds=self._holds(subject))
            case _:
                self._parts(statement)

    def _parts(self, node: ast.AST) -> None:
        """The expressions and statements within any other node, in their order."""
        for part in ast.iter_child_nodes(node):
            match part:
                case ast.expr():
                    self._holds(part)
                case ast.stmt():
                    self._statement(part)
                case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                    self._bind(target, holds=self._holds(value))
                case _:
                    self._parts(part)

    def _cases(self, cases: Iterable[ast.match_case], *, holds: bool) -> None:
        for case in cases:
            if holds:
                captures = (one for one in ast.walk(case.pattern) if isinstance(one, ast.MatchAs | ast.MatchStar))
                self._names |= {one.name for one in captures if one.name}
            if case.guard:
                self._holds(case.guard)
            self.run(case.body)

    def _bind(self, target: ast.expr, *, holds: bool) -> None:
        """Take up the names that the value is assigned to; an attribute that it is stored in is not followed."""
        if holds and isinstance(target, ast.Name | ast.Tuple | ast.List):
            self._names |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}

    def _any(self, values: Iterable[ast.expr | None]) -> bool:
        holding = [self._holds(value) for value in values if value is not None]  # each is read, for its calls
        return True in holding

    def _holds(self, value: ast.expr) -> bool:  # noqa: C901, PLR0911 - one line for each kind of expression
        """Whether an expression is, or holds, the value; follows the calls within it."""
        match value:
            case ast.Name(id=name):
                return name in self._names
            case (
                ast.Attribute(value=inner) | ast.Await(value=inner) | ast.Starred(value=inner) | ast.Lambda(body=inner)
            ):
                return self._holds(inner)
            case ast.Subscript(value=inner, slice=at):
                holds = self._holds(inner)
                self._holds(at)
                return holds
            case ast.NamedExpr(target=target, value=inner):
                holds = self._holds(inner)
                self._bind(target, holds=holds)
                return holds
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
                return self._any(parts)
            case ast.Dict(keys=keys, values=values):
                return self._any((*keys, *values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._holds(test)
                return self._any((body, orelse))
            case ast.BinOp(left=left, right=right):
                return self._any((left, right))
            case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
                self._generators(value.generators)
                return self._holds(part)
            case ast.DictComp(key=key, value=part):
                self._generators(value.generators)
                return self._any((key, part))
            case ast.Call():
                return self._call(value)
            case _:
                self._parts(value)
                return False

    def _generators(self, generators: Iterable[ast.comprehension]) -> None:
        for one in generators:
            self._bind(one.target, holds=self._holds(one.iter))
            self._any(one.ifs)

    def _call(self, call: ast.Call) -> bool:
        """Follow the value into what is called; return whether the result is, or holds, the value."""
        receiver = isinstance(call.func, ast.Attribute) and self._holds(call.func.value)
        placed = [self._holds(argument) for argument in call.args]
        named = {keyword.arg: self._holds(keyword.value) for keyword in call.keywords}
        if not (receiver or any(placed) or any(named.values())):
            return False
        source = self._walk.source
        if callee := source.callee(self._function, call.func):
            taken = self._taken(callee, placed, named)
            if receiver and len(callee.parameters) < len(callee.node.args.args):
                taken.add("self")
            if callee.path.startswith(NOT_ENTERED) or not taken:
                return False
            return self._walk.enter(callee, taken)
        if source.is_class(self._function, call.func):
            return True
        return isinstance(call.func, ast.Name) and call.func.id in COPYING | PICKING

    @staticmethod
    def _taken(callee: Definition, placed: list[bool], named: dict[str | None, bool]) -> set[str]:
        """The parameters that take the value."""
        arguments, parameters = callee.node.args, callee.parameters
        rest = [arguments.vararg.arg] * len(placed) if arguments.vararg else []
        taken = {name for name, holds in zip([*parameters, *rest], placed, strict=False) if holds}
        known = {*parameters, *(one.arg for one in arguments.kwonlyargs)}
        for name, holds in named.items():
            if holds and name in known:
                taken.add(name)
            elif holds and arguments.kwarg:
                taken.add(arguments.kwarg.arg)
        return taken


def follow(source: Source, start: str) -> Walk:
    """The walk of `FILE:FUNCTION:PARAMETER`."""
    function, parameter = source.start(start)
    walk = Walk(source)
    walk.enter(function, (parameter,))
    return walk


def figures(walk: Walk) -> str:
    """Stays, files and returns of a walk, in words."""
    return f"{len(walk.stays)} stays, {len(set(walk.stays))} files, {walk.returns} returns"


def main() -> int:
    """Print the walks; return 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", nargs="?", metavar="FILE:FUNCTION:PARAMETER", help="without it, the walks of WALKS")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to read; this one if left out")
    arguments = parser.parse_args()
    source = Source(arguments.root)
    if arguments.start:
        walk = follow(source, arguments.start)
        for step in walk.steps:
            sys.stdout.write(f"{step.path}: {step.function}({', '.join(step.parameters)})\n")
        sys.stdout.write(f"{figures(walk)}\n")
        return 0
    above = 0
    for limit in WALKS:
        walk = follow(source, limit.start)
        above |= len(walk.stays) > limit.stays or walk.returns > limit.returns
        sys.stdout.write(f"{limit.what}: {figures(walk)} (at most {limit.stays} stays, {limit.returns} returns)\n")
    if above:
        sys.stdout.write(
            "A walk is above its limit: pass the value on less often, or say in WALKS why it must be longer.\n"
        )
    return above


if __name__ == "__main__":
    sys.exit(main())
