"""Runs inside the sandbox: starts a command with a local HTTP proxy that leads to the gateway's Unix socket.

Called as `python -I relay.py SOCKET COMMAND…`; exits with the command's return code.
"""

import asyncio
import os
import sys

_CHUNK = 65_536
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


async def run(path: str, command: list[str]) -> int:
    """Run the command to its end and return its code; each connection to its proxy is passed on to the socket."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(path)
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        except OSError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    env = {**os.environ, **dict.fromkeys(_PROXIES, address), "NO_PROXY": "", "no_proxy": ""}
    env.pop("LD_LIBRARY_PATH", None)  # only the interpreter of this relay needs it
    process = await asyncio.create_subprocess_exec(*command, env=env)
    return await process.wait()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    os._exit(asyncio.run(run(sys.argv[1], sys.argv[2:])) % 256)
