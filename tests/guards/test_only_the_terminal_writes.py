"""Only the modules of the terminal write to it: all others hand their text to one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.project import product_trees

pytestmark = pytest.mark.guard

_TERMINAL = {
    "soul/cli.py", "soul/terminal/output.py", "soul/terminal/plain.py", "soul/terminal/line_editor.py",
    "soul/room_host/screen.py", "soul/room_host/terminal_screen.py",
    "adapters/space/chatlog.py",
}  # fmt: skip
_NO_TERMINAL = {
    ("modules/runtime/sandbox/runner.py", "process.stdin.write"),
    *(("modules/runtime/sandbox/gateway.py", f"{name}.write") for name in ("writer", "back")),
    ("modules/runtime/sandbox/relay.py", "writer.write"),
    ("modules/runtime/backup/restoring.py", "self._file.write"),
    ("modules/runtime/drawing/worker.py", "sys.stdout.buffer.write"),
    ("adapters/space/server_connection.py", "transport.write"),
    ("adapters/git/client.py", "stdin.write"),
    ("town/github/service.py", "stdin.write"),
}
"""A pipe to a child, a connection, and files of a repository and of a backup."""


def test_only_the_modules_of_the_terminal_write_to_it() -> None:
    """All others hand their text to `soul.terminal.output`, to a console, or to the room's screen."""
    found = {(path, name) for path, tree in product_trees().items() for name in writes(tree)}
    assert {path for path, _ in found - _NO_TERMINAL} == _TERMINAL
    assert found >= _NO_TERMINAL


@pytest.mark.parametrize(
    "code",
    [
        "print(a)",
        "typer.echo(a)",
        "sys.stderr.write(a)",
        "self._out.write(a)",
        "stream.writelines(a)",
        "os.write(1, a)",
        "sys.stdout.buffer.write(a)",
        "from rich import print as show",
        "from rich.console import Console",
        "import rich.console",
        "from prompt_toolkit import print_formatted_text",
        "from prompt_toolkit.renderer import print_formatted_text as show",
        "from prompt_toolkit.shortcuts import PromptSession",
        "with lock as file:\n    out.write(a)",
    ],
)
def test_whatever_writes_to_a_stream_is_seen(code: str) -> None:
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "with path.open('ab') as file:\n    file.write(a)",
        "with os.fdopen(handle, 'wb') as file:\n    file.writelines(a)",
        "async def f():\n    await self.files.write(a)",
        "write_lines(a)",
        "from rich.text import Text",
    ],
)
def test_what_writes_a_file_that_it_opened_or_is_awaited_is_no_stream(code: str) -> None:
    assert not list(writes(ast.parse(code)))


_PRINTS = {"print", "typer.echo", "typer.secho", "click.echo", "click.secho", "os.write"}
_PRINTERS = {
    "rich": ("print", "print_json", "console"),
    "rich.console": (),
    "rich.live": (),
    "rich.progress": (),
    "prompt_toolkit": ("print_formatted_text", "PromptSession", "prompt"),
    "prompt_toolkit.renderer": (),
    "prompt_toolkit.shortcuts": (),
    "prompt_toolkit.output": (),
    "prompt_toolkit.output.vt100": (),
}
"""What prints, by its module; all of the module where no names stand."""


def writes(tree: ast.Module) -> Iterator[str]:
    """What in this module may write to a stream, by the name of what is called or imported.

    A file that a `with` statement opened is none, and what is awaited is no stream's own method.
    """
    nodes = list(ast.walk(tree))
    awaited = {id(node.value) for node in nodes if isinstance(node, ast.Await)}
    files = {
        ast.unparse(item.optional_vars)
        for node in nodes
        if isinstance(node, ast.With)
        for item in node.items
        if item.optional_vars and ast.unparse(item.context_expr).partition("(")[0].rpartition(".")[2] in _OPENS
    }
    for node in nodes:
        if isinstance(node, ast.Call) and id(node) not in awaited:
            name = ast.unparse(node.func)
            receiver, _, method = name.rpartition(".")
            if name in _PRINTS or (method in {"write", "writelines"} and receiver not in {*files, "self"}):
                yield name
        elif isinstance(node, ast.ImportFrom) and node.module in _PRINTERS:
            names = _PRINTERS[node.module]
            yield from (f"{node.module}.{one.name}" for one in node.names if not names or one.name in names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in _PRINTERS)


_OPENS = {"open", "fdopen"}
