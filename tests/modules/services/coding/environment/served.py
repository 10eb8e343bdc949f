"""Package indexes on loopback, and trees that need what they serve."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class Handler(SimpleHTTPRequestHandler):
    """Serves files that clients must not cache."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def index(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback, and yield its URL."""
    folder.mkdir(exist_ok=True)
    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def listener() -> Iterator[tuple[str, list[object]]]:
    """Yield an address that nothing may contact, and a list that names who did, once the context ends."""
    asked: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        with suppress(TimeoutError):
            asked.append(server.accept()[1])


def write(tree: Path, files: Mapping[str, str]) -> Path:
    """Write files into a tree, and return it."""
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree
