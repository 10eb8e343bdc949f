"""Which function a call means, read from the source of a checkout: by its imports and annotations.

Used by `walks.py`. The target of a method call is the annotated class of its receiver. It counts as unknown where
several classes define a method of that name: which of them is called is chosen when the program runs.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = ("adapters", "common", "local_tools", "modules", "soul", "town")

Function = ast.FunctionDef | ast.AsyncFunctionDef
ClassId = tuple[str, str]
"""The path of a file, and the name of a class in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A function, and where it stands; `owner` is the name of its class, "" for none."""

    path: str
    owner: str
    node: Function

    @property
    def parameters(self) -> list[str]:
        """The names of the positional parameters, without `self` and `cls`."""
        names = [one.arg for one in (*self.node.args.posonlyargs, *self.node.args.args)]
        return names[1:] if names[:1] in (["self"], ["cls"]) else names


@dataclass(slots=True)
class File:
    """What one file defines and imports, by name."""

    path: str
    functions: dict[str, Definition] = field(default_factory=dict)
    methods: dict[str, dict[str, Definition]] = field(default_factory=dict)
    fields: dict[str, dict[str, ast.expr]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)


class Source:
    """The functions and classes of a checkout, and which of them a call means."""

    def __init__(self, root: Path) -> None:
        self.files: dict[str, File] = {}
        self._modules: dict[str, File] = {}
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                relative = path.relative_to(root)
                parts = [part for part in relative.with_suffix("").parts if part != "__init__"]
                file = _read(relative.as_posix(), path.read_text(encoding="utf-8"))
                self.files[file.path] = self._modules[".".join(parts)] = file
        self._definers = Counter(
            name for file in self.files.values() for methods in file.methods.values() for name in methods
        )

    def start(self, text: str) -> tuple[Definition, str]:
        """The function and the parameter of `FILE:FUNCTION:PARAMETER`. Raises `SystemExit` if there is none."""
        path, _, rest = text.partition(":")
        function, _, parameter = rest.partition(":")
        owner, _, name = function.rpartition(".")
        file = self.files.get(path, File(path))
        found = (file.methods.get(owner, {}) if owner else file.functions).get(name)
        if found is None or parameter not in {one.arg for one in ast.walk(found.node.args) if isinstance(one, ast.arg)}:
            raise SystemExit(f"{text}: no such function or parameter; if it has moved, say so in WALKS")
        return found, parameter

    def is_class(self, inside: Definition, called: ast.expr) -> bool:
        """Whether a call builds an object of a class of ours."""
        return isinstance(called, ast.Name) and self._class(self.files[inside.path], called) is not None

    def callee(self, inside: Definition, called: ast.expr) -> Definition | None:
        """The function of ours that a call within `inside` means; None if it is not known before the program runs."""
        file = self.files[inside.path]
        match called:
            case ast.Name(id=name) if name in file.functions:
                return file.functions[name]
            case ast.Name(id=name) if name in file.imports:
                module, original = file.imports[name]
                return self._modules[module].functions.get(original) if module in self._modules else None
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr) if inside.owner:
                return file.methods[inside.owner].get(attr)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in file.imports:
                module = ".".join(file.imports[name])
                return self._modules[module].functions.get(attr) if module in self._modules else None
            case ast.Attribute(value=receiver, attr=attr) if self._definers[attr] == 1:
                kind = self._kind(inside, receiver)
                return self.files[kind[0]].methods[kind[1]].get(attr) if kind else None
            case _:
                return None

    def _kind(self, inside: Definition, value: ast.expr) -> ClassId | None:
        """The class of ours that an expression is of, as far as annotations tell."""
        match value:
            case ast.Name(id="self") if inside.owner:
                return inside.path, inside.owner
            case ast.Name(id=name):
                arguments = (one for one in ast.walk(inside.node.args) if isinstance(one, ast.arg))
                annotation = next((one.annotation for one in arguments if one.arg == name), None)
                return self._class(self.files[inside.path], annotation)
            case ast.Attribute(value=inner, attr=attr):
                owner = self._kind(inside, inner)
                if owner is None:
                    return None
                file = self.files[owner[0]]
                return self._class(file, file.fields[owner[1]].get(attr))
            case ast.Await(value=inner):
                return self._kind(inside, inner)
            case _:
                return None

    def _class(self, file: File, annotation: ast.expr | None) -> ClassId | None:
        """The first class of ours that an annotation names."""
        for node in ast.walk(annotation) if annotation else ():
            if not isinstance(node, ast.Name):
                continue
            if node.id in file.methods:
                return file.path, node.id
            module, name = file.imports.get(node.id, ("", ""))
            if module in self._modules and name in self._modules[module].methods:
                return self._modules[module].path, name
        return None


def _read(path: str, text: str) -> File:
    file, tree = File(path), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            file.imports |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    for node in tree.body:
        if isinstance(node, Function):
            file.functions[node.name] = Definition(path, "", node)
        elif isinstance(node, ast.ClassDef):
            functions = [one for one in node.body if isinstance(one, Function)]
            file.methods[node.name] = {one.name: Definition(path, node.name, one) for one in functions}
            file.fields[node.name] = dict(_fields(node))
    return file


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """The attributes of a class, each with the expression that names its class."""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, annotation
            case ast.FunctionDef(name="__init__"):
                given = {one.arg: one.annotation for one in ast.walk(statement.args) if isinstance(one, ast.arg)}
                for inner in ast.walk(statement):
                    match inner:
                        case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=origin)):
                            if kind := given.get(origin):
                                yield name, kind
                        case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=func)):
                            yield name, func
                        case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                            yield name, annotation
                        case _:
                            continue
            case ast.FunctionDef(name=name, returns=ast.expr() as annotation, decorator_list=[ast.Name(id="property")]):
                yield name, annotation
            case _:
                continue
