"""Proves which addresses are stores, and that the owner is told how to write the others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.storage.local import Credentials, open_storage
from common.errors import ConfigError
from common.result import Err, Ok
from tests.adapters.storage.s3_server import S3, WHO
from tests.loopback import held_port
from tests.patience import HANG_S


async def test_without_an_address_things_lie_in_the_folder(tmp_path: Path) -> None:
    await open_storage("", root=tmp_path / "store").put("a/b.md", b"x")
    assert (tmp_path / "store/a/b.md").read_bytes() == b"x"


async def test_a_file_address_names_a_folder(tmp_path: Path) -> None:
    await open_storage(f"file://{tmp_path}/an%20other", root=tmp_path / "store").put("a.md", b"x")
    assert (tmp_path / "an other/a.md").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("file://store", "names no folder"),
        ("file:store", "names no folder"),
        ("ftp://host/x", "no store of the kind 'ftp'"),
        ("http://[::1", "is no URL"),
        ("s3://", "names no bucket"),
        ("s3://bucket?endpont=x", "knows no option endpont"),
        ("s3://bucket?endpoint=http://storage.example", "plain http endpoint"),
        ("s3://bucket?endpoint=http://127.0.0.1.example", "plain http endpoint"),
        ("s3://bucket?endpoint=storage.example", "endpoint is no address"),
        ("s3://bucket?endpoint=https://me:pw@storage.example", "endpoint is no address"),
    ],
)
def test_a_wrong_address_is_named_with_a_remedy(tmp_path: Path, url: str, line: str) -> None:
    with pytest.raises(ConfigError, match=line) as caught:
        open_storage(url, root=tmp_path, credentials=WHO)
    assert caught.value.remedy


def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="carries a password") as caught:
        open_storage("s3://AKID:hunter2@bucket", root=tmp_path)
    assert "hunter2" not in f"{caught.value} {caught.value.remedy}"


@pytest.mark.parametrize("url", ["s3://bucket", "az://container"])
def test_without_credentials_nobody_is_asked_for_any(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="needs credentials"):
        open_storage(url, root=tmp_path, credentials=Credentials("AKID"))


@pytest.mark.parametrize("url", ["az://container", "s3://bucket/below/here?region=auto"])
def test_a_right_address_opens_without_asking_anybody(tmp_path: Path, url: str) -> None:
    credentials = Credentials("account", "c2VjcmV0LWtleS1mb3ItYS10ZXN0")
    assert open_storage(url, root=tmp_path, credentials=credentials)


def test_credentials_do_not_show_themselves() -> None:
    assert WHO.secret_access_key not in repr(WHO)


async def test_below_a_prefix_nothing_of_it_shows_in_the_keys(tmp_path: Path, s3: S3) -> None:
    url = s3.new_bucket()
    below = open_storage(url.replace("?", "/fleet/one?"), root=tmp_path, credentials=WHO)
    await below.put("a/b.md", b"x")
    found = await below.list("a/")
    assert isinstance(found, Ok)
    assert [info.key for info in found.data] == ["a/b.md"]
    whole = await open_storage(url, root=tmp_path, credentials=WHO).get("fleet/one/a/b.md")
    assert whole.success


async def test_what_others_on_the_machine_take_as_their_proxy_is_not_asked(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = s3.new_bucket()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await open_storage(url, root=tmp_path, credentials=WHO).put("a.md", b"x")).success


async def test_a_bucket_that_does_not_exist_is_no_empty_bucket(tmp_path: Path, s3: S3) -> None:
    storage = open_storage(s3.url("nowhere"), root=tmp_path, credentials=WHO)
    for result in (
        await storage.get("a.md"),
        await storage.put("a.md", b"x"),
        await storage.delete("a.md"),
        await storage.list(""),
    ):
        assert isinstance(result, Err)
        assert (result.kind, "no such bucket" in result.error) == ("invalid", True)


async def test_where_nobody_listens_nothing_was_done(tmp_path: Path) -> None:
    with held_port() as port:
        url = f"s3://bucket?endpoint=http://127.0.0.1:{port}"
        storage = open_storage(url, root=tmp_path, credentials=WHO, deadline_s=5)
        results = (await storage.get("a.md"), await storage.put("a.md", b"x"))
    assert [result.kind for result in results if isinstance(result, Err)] == ["transient", "transient"]


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a service that reads a request and says always the same, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                held.append(peer)
                peer.recv(65536)
                if request.param:
                    peer.sendall(request.param)
                    peer.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for peer in held:
            peer.close()


def answer(status: str, body: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


DENIED = answer("403 Forbidden", "<Error><Code>SignatureDoesNotMatch</Code></Error>")


@pytest.mark.parametrize(
    ("answering", "reading", "writing"),
    [
        (b"", "transient", "unknown_outcome"),
        (b"HTTP/1.1 200 OK\r\nContent-Len", "transient", "unknown_outcome"),
        (DENIED, "auth", "auth"),
        (answer("401 Unauthorized"), "auth", "auth"),
        (answer("400 Bad Request"), "invalid", "invalid"),
        (answer("503 Slow Down"), "transient", "transient"),
    ],
    indirect=["answering"],
)
async def test_each_fault_of_the_service_has_its_kind(
    tmp_path: Path, answering: str, reading: str, writing: str
) -> None:
    url = f"s3://bucket?endpoint={answering}"
    deadline_s = 0.2 if writing == "unknown_outcome" else HANG_S  # these answer never, or not to the end
    storage = open_storage(url, root=tmp_path, credentials=WHO, deadline_s=deadline_s)
    read, written = await storage.get("a.md"), await storage.put("a.md", b"x")
    assert isinstance(read, Err)
    assert isinstance(written, Err)
    assert (read.kind, written.kind) == (reading, writing)
    assert not any(secret in f"{read.error}{written.error}" for secret in (WHO.secret_access_key, WHO.access_key_id))
