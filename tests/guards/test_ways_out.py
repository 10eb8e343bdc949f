"""Only the modules of the terminal write to it; all others pass their text to one of them.

No module makes HTTP clients or sockets of its own: all connections outside the list below use the one transport.
"""

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
    ("modules/runtime/backup.py", "self._file.write"),
    ("modules/runtime/drawing/draw.py", "sys.stdout.buffer.write"),
    ("adapters/space/server_connection.py", "transport.write"),
    ("adapters/git/client.py", "stdin.write"),
    ("soul/supervisor.py", "os.write"),
    ("town/github/service.py", "stdin.write"),
}
"""Writes to a pipe of a child, to a connection, and to files of a repository or a backup."""


def test_only_the_modules_of_the_terminal_write_to_it() -> None:
    """All others pass their text to `soul.terminal.output`, to a console, or to the room's screen."""
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
"""Names that print, by module; an empty tuple means the whole module."""


def writes(tree: ast.Module) -> Iterator[str]:
    """Yield the calls and imports in this module that may write to a stream, by name.

    Files opened by a `with` statement do not count, and awaited calls are not methods of a stream.
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


# Modules that open connections or listen.
OPENERS = {
    "aiohttp", "dns", "ftplib", "http.client", "http.server", "httpx2", "imaplib", "poplib", "requests", "smtplib",
    "socket", "socketserver", "ssl", "telnetlib", "urllib.request", "urllib3", "websockets", "xmlrpc",
}  # fmt: skip
IMPORTS_ALLOWED = {
    ("adapters/web/client.py", "socket"),  # the resolver
    ("adapters/web/client.py", "ssl"),  # the certificates
    ("adapters/kube.py", "ssl"),  # those of a cluster
    ("modules/runtime/status.py", "socket"),  # to the supervisor on this machine that started it
    ("town/serving.py", "socket"),  # the town's own servers
    ("town/atproto/stream.py", "websockets"),  # the same, for its stream of changes
    # A room: its server, and the member's connection to the one address that the owner or the local network named.
    *((f"adapters/space/{name}.py", "websockets") for name in ("client", "connecting", "server")),
    *(("adapters/space/server_connection.py", name) for name in ("websockets", "socket")),
    ("adapters/space/browsing.py", "socket"),  # an address in four bytes
    ("adapters/space/discovery.py", "socket"),  # the resolver
}
# Calls that open a connection or create something that does, and where they are allowed.
CALLS = {
    "create_connection", "create_server", "open_connection", "open_unix_connection", "start_server",
    "start_unix_server", "sock_connect", "connect_tcp", "AsyncHTTPTransport", "HTTPTransport", "AsyncConnectionPool",
    "ConnectionPool", "AnyIOBackend", "AutoBackend",
}  # fmt: skip
CALLS_ALLOWED = {
    ("adapters/web/client.py", "connect_tcp"),
    ("adapters/web/client.py", "AsyncConnectionPool"),
    ("adapters/web/client.py", "AnyIOBackend"),
    ("adapters/space/discovery.py", "open_connection"),  # whether a discovered room answers
    # Tools that install packages: from inside their sandbox through a Unix socket to the package index.
    *(("modules/runtime/sandbox/gateway.py", name) for name in ("start_unix_server", "open_connection")),
    *(("modules/runtime/sandbox/relay.py", name) for name in ("start_server", "open_unix_connection")),
    ("soul/commands/doctor.py", "open_connection"),  # whether the configured room answers
}
CLIENTS = {"AsyncClient": "transport", "AsyncOpenAI": "http_client"}
QUICK = {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "Client"}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def strays(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield what in a module opens connections by itself."""
    for module in imports(tree):
        opener = next((o for o in OPENERS if module == o or module.startswith(f"{o}.")), None)
        if opener and (name, opener) not in IMPORTS_ALLOWED:
            yield f"imports {module}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = getattr(node.func.value, "id", "") if isinstance(node.func, ast.Attribute) else ""
        given = {keyword.arg for keyword in node.keywords}
        if called in CALLS and (name, called) not in CALLS_ALLOWED:
            yield f"calls {called}"
        elif owner in {"httpx", "openai", "anyio", "urllib"} and called in QUICK:
            yield f"calls {owner}.{called}"
        elif owner in {"httpx", "openai"} and called in CLIENTS and CLIENTS[called] not in given:
            yield f"makes an {owner}.{called} without a {CLIENTS[called]}"


def test_a_module_goes_out_by_the_transport_or_not_at_all() -> None:
    assert [f"{name} {found}" for name, tree in product_trees().items() for found in strays(name, tree)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import httpx; httpx.get('http://x')",
        "import httpx; httpx.AsyncClient()",
        "import httpx; httpx.Client()",
        "import openai; openai.AsyncOpenAI(api_key='k')",
        "import socket",
        "from urllib import request",
        "import urllib.request as way",
        "from http.client import HTTPConnection",
        "import asyncio; asyncio.open_connection('x', 1)",
        "async def f(loop): await loop.create_connection(None, 'x', 1)",
        "from httpx import AsyncHTTPTransport as T, AsyncHTTPTransport; AsyncHTTPTransport()",
        "import httpx2",
    ],
)
def test_this_search_finds_who_goes_out_alone(code: str) -> None:
    assert list(strays("modules/somewhere.py", ast.parse(code)))
