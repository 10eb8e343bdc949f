"""Reads and writes the owner's settings in `<home>/.env`, and reads the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from dotenv.parser import Binding, parse_stream
from dotenv.variables import parse_variables

from common.errors import ConfigError

_LITERAL = "'"
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_ASSIGNMENT = re.compile(
    r"(?P<name>\s*(?:export[^\S\r\n]+)?[^=#\s]+[^\S\r\n]*)(?:=[^\S\r\n]*"
    r"(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^\r\n]*?))?(?P<rest>(?:[^\S\r\n]+#[^\r\n]*)?\s*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Given:
    """Each variable that has a value, by its name in lower case, and what in the file cannot be read.

    `names` are the names in the file, as written; `bare` those of them that are there without `=`.
    """

    values: dict[str, str]
    problems: tuple[ConfigError, ...]
    names: tuple[str, ...]
    bare: tuple[str, ...]


def env_file(home: Path) -> Path:
    """Return the path of the settings of `home`."""
    return home / ".env"


def given(home: Path, content: bytes | None = None) -> Given:
    """Read what can be read; the environment wins over the file, and a missing file counts as empty.

    With `content`, read that as if it were the file.
    """
    file = env_file(home)
    try:
        if content is None:
            content = file.read_bytes() if file.is_file() or file.is_fifo() else b""
    except OSError as error:
        why = error.strerror or str(error)
        problem = ConfigError(f"{file} cannot be read: {why}", remedy="Give this user read access to it.")
        return Given(_with_environment({}), (problem,), (), ())
    problems = []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.append(ConfigError(f"{file} is not UTF-8 text", remedy="Save it as UTF-8."))
        text = content.decode("utf-8-sig", errors="replace")
    bindings = list(parse_stream(StringIO(text)))
    unread = [str(binding.original.line) for binding in bindings if binding.error]
    if unread:
        lines = f"line {unread[0]}" if len(unread) == 1 else f"lines {', '.join(unread)}"
        remedy = "Write NAME=value, and a value with spaces, quotes or # in single quotes: NAME='a value'."
        problems.append(ConfigError(f"{file} cannot be read in {lines}", remedy=remedy))
    named = [binding for binding in bindings if binding.key is not None]
    return Given(
        _with_environment(_values(named)),
        tuple(problems),
        tuple(dict.fromkeys(binding.key or "" for binding in named)),
        tuple(binding.key or "" for binding in named if binding.value is None),
    )


def _with_environment(written: Mapping[str, str]) -> dict[str, str]:
    """Return the values without surrounding white space: a mounted or pasted secret often ends in a newline."""
    items = (item for source in (written, os.environ) for item in source.items())
    return {name.lower(): value.strip() for name, value in items if value.strip()}


def _values(bindings: list[Binding]) -> dict[str, str]:
    """Return the values as a shell has them: `${NAME}` is replaced by another value, but not in single quotes."""
    values: dict[str, str] = {}
    for binding in bindings:
        if binding.key is None or binding.value is None:
            continue
        is_literal = binding.original.string.partition("=")[2].lstrip().startswith(_LITERAL)
        known = {**os.environ, **values}
        atoms = () if is_literal else parse_variables(binding.value)
        values[binding.key] = binding.value if is_literal else "".join(atom.resolve(known) for atom in atoms)
    return values


def with_values(text: str, values: Mapping[str, str]) -> str:
    """Return the text of an env file in which each name has its value, quoted if needed; the rest is unchanged.

    If a name was not set, the commented line with its default is replaced.
    """
    bindings = list(parse_stream(StringIO(text)))
    parts = [binding.original.string for binding in bindings]
    places = {(binding.key or "").upper(): place for place, binding in enumerate(bindings)}
    missing = []
    for name, value in values.items():
        line = f"{name}={quoted(value)}"
        if (place := places.get(name)) is not None and (assigned := _ASSIGNMENT.fullmatch(parts[place])):
            parts[place] = f"{assigned['name']}={quoted(value)}{assigned['rest']}"
        else:
            missing.append((name, line))
    text = "".join(parts)
    for name, line in missing:
        if default := re.search(rf"^#{name}=.*$", text, re.MULTILINE):
            text = f"{text[: default.start()]}{line}{text[default.end() :]}"
        else:
            text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    return text


def quoted(value: str) -> str:
    """Return a value in the form of an env file."""
    if not value or _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
