"""Proves what the folder keeps when a write is interrupted, the disk is full, or somebody else writes there too.

Proves which addresses name a store, and that the error about any other says how to write it. Proves that no input,
however crafted, leaves its place in a store, and that no two inputs share one.
"""

import asyncio
import fcntl
import os
import re
import resource
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.storage import objects
from adapters.storage.local import Credentials, Storage, open_storage
from adapters.storage.objects import StoredObject, archive_key
from common.errors import ConfigError
from common.result import Err, Ok
from tests.adapters.storage.s3_server import S3, WHO
from tests.loopback import held_port
from tests.patience import HANG_S

KEY = "media/owner~3Aterminal/u.png"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage("", root=tmp_path / "store")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store" / KEY


def by_hand(file: Path, data: bytes | None) -> None:
    """Change the file without the store; None deletes it."""
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)


def beside(file: Path) -> Path:
    return file.with_name(file.name + ".meta.json")


async def got(storage: Storage, key: str = KEY) -> StoredObject:
    result = await storage.get(key)
    assert isinstance(result, Ok)
    return result.data


async def test_only_the_owner_can_read_what_is_kept(storage: Storage, file: Path, tmp_path: Path) -> None:
    await storage.put(KEY, b"x", metadata={"n": "1"})
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, beside(file))} == {0o600}
    folders = [folder for folder in file.parents if folder.is_relative_to(tmp_path / "store")]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_killed_between_sidecar_and_content_the_old_content_has_its_own_metadata(
    storage: Storage, file: Path
) -> None:
    await storage.put(KEY, b"old", content_type="image/png", metadata={"name": "old.png"})
    old = await got(storage)
    await storage.put(KEY, b"new", content_type="image/gif", metadata={"name": "new.gif"})
    new = await got(storage)
    by_hand(file, b"old")
    assert await got(storage) == old
    by_hand(file, b"new")
    assert await got(storage) == new


async def test_killed_at_the_first_write_nothing_is_there_and_the_next_one_succeeds(
    storage: Storage, file: Path
) -> None:
    await storage.put(KEY, b"x", metadata={"name": "a.png"})
    by_hand(file, None)
    missing = await storage.get(KEY)
    assert isinstance(missing, Err)
    assert missing.kind == "not_found"
    assert await storage.list("") == Ok(())
    assert (await storage.put(KEY, b"y", if_absent=True)).success
    assert (await got(storage)).metadata == {}


async def test_without_a_sidecar_that_can_be_read_an_object_is_readable(storage: Storage, file: Path) -> None:
    for told in (None, b"", b"[]", b"\xff", b'{"metadata": 3, "contentType": []}', b"[" * 100_000):
        await storage.put(KEY, b"x", content_type="image/png", metadata={"n": "1"})
        by_hand(beside(file), told)
        there = await got(storage)
        assert (there.data, there.content_type, there.metadata) == (b"x", "", {}), told


async def test_a_file_that_was_changed_by_hand_keeps_what_is_told_of_it(storage: Storage, file: Path) -> None:
    await storage.put(KEY, b"old", metadata={"name": "old.png"})
    before = await got(storage)
    by_hand(file, b"by hand")
    there = await got(storage)
    assert (there.data, there.metadata) == (b"by hand", {"name": "old.png"})
    assert not (await storage.put(KEY, b"x", if_match=before.etag)).success


async def test_what_was_left_by_hand_or_by_a_killed_writer_is_not_listed(storage: Storage, file: Path) -> None:
    await storage.put(KEY, b"x", metadata={"n": "1"})
    for name in (".u.png.k3xq", "my picture.png", "other.png.meta.json"):
        (file.parent / name).write_bytes(b"half")
    listed = await storage.list("")
    assert isinstance(listed, Ok)
    assert [info.key for info in listed.data] == [KEY]
    assert await storage.delete_all("media/") == Ok(1)
    assert not (file.parents[1]).exists()


async def test_the_longest_key_still_fits_on_a_disk(storage: Storage) -> None:
    key = archive_key("👋" * 100, "x" * 180, epoch_ms=10**13)
    assert (await storage.put(key, b"x", metadata={"n": "1"})).success
    assert (await got(storage, key)).metadata == {"n": "1"}


async def test_empty_folders_go_with_their_last_object(storage: Storage, tmp_path: Path) -> None:
    await storage.put("a/b/c.md", b"x", metadata={"n": "1"})
    await storage.delete("a/b/c.md")
    assert [path.name for path in (tmp_path / "store").iterdir()] == [".lock"]


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond 4 KiB: the nearest thing to a full disk that a process can make for itself.

    This holds for every file of the process, also for the output of the tests, so use it for only one write.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_when_the_disk_takes_no_more_the_old_content_stays(storage: Storage, file: Path) -> None:
    await storage.put(KEY, b"old", metadata={"n": "1"})
    old = await got(storage)
    with full_disk():
        result = await storage.put(KEY, b"x" * 8192, metadata={"n": "2"})
    assert isinstance(result, Err)
    assert (result.kind, "Cannot write" in result.error) == ("fatal", True)
    assert await got(storage) == old
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, beside(file).name]


@pytest.mark.parametrize("place", ["media", KEY])
async def test_a_link_does_not_lead_out_of_the_store(storage: Storage, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    (outside / "owner~3Aterminal").mkdir(parents=True)
    (outside / "owner~3Aterminal/u.png").write_bytes(b"private")
    link = tmp_path / "store" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / KEY.removeprefix("media/") if place == KEY else outside)
    for result in (await storage.get(KEY), await storage.put(KEY, b"x"), await storage.delete(KEY)):
        assert isinstance(result, Err)
        assert "leads out of the store" in result.error
    assert await storage.list("") == Ok(())
    await storage.delete_all("media/")
    assert (outside / "owner~3Aterminal/u.png").read_bytes() == b"private"


async def test_while_another_process_writes_for_too_long_nothing_is_done(storage: Storage, tmp_path: Path) -> None:
    await storage.put(KEY, b"old")
    handle = os.open(tmp_path / "store/.lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        hurried = open_storage("", root=tmp_path / "store", deadline_s=0.3)
        result = await hurried.put(KEY, b"new")
        assert isinstance(result, Err)
        assert result.kind == "transient"
        assert (await got(storage)).data == b"old"
    finally:
        os.close(handle)
    assert (await storage.put(KEY, b"new")).success


COUNTER = """
import asyncio, sys
from pathlib import Path
from adapters.storage.objects import archive_key
from adapters.storage.local import open_storage

async def count(storage, times):
    done = 0
    while done < times:
        there = (await storage.get("n.md")).data
        number = b"%d" % (int(there.data) + 1)
        done += (await storage.put("n.md", number, metadata={"n": number.decode()}, if_match=there.etag)).success

asyncio.run(count(open_storage("", root=Path(sys.argv[1])), 20))
"""


@pytest.mark.slow
async def test_two_processes_that_count_together_lose_no_number(tmp_path: Path) -> None:
    storage = open_storage("", root=tmp_path)
    await storage.put("n.md", b"0")
    command = (sys.executable, "-c", COUNTER, str(tmp_path))
    children = [await asyncio.create_subprocess_exec(*command, cwd=ROOT) for _ in range(2)]
    assert [await child.wait() for child in children] == [0, 0]
    there = await got(storage, "n.md")
    assert (there.data, there.metadata) == (b"40", {"n": "40"})


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
    """Yield the address of a service that reads a request and sends the same answer to each, or none."""
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
    deadline_s = 0.2 if writing == "unknown_outcome" else HANG_S  # these never answer, or not completely
    storage = open_storage(url, root=tmp_path, credentials=WHO, deadline_s=deadline_s)
    read, written = await storage.get("a.md"), await storage.put("a.md", b"x")
    assert isinstance(read, Err)
    assert isinstance(written, Err)
    assert (read.kind, written.kind) == (reading, writing)
    assert not any(secret in f"{read.error}{written.error}" for secret in (WHO.secret_access_key, WHO.access_key_id))


TRICKY = st.text(alphabet="./~-\\%:a2E\0é\ud800\n", max_size=8) | st.text(max_size=300) | st.just("x" * 400)
LONG = re.compile(r"~~[0-9a-f]{64}$")


def decoded(part: str) -> str:
    """Return what a part was made from, if it was not too long."""
    raw = re.sub(r"~([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), "" if part == "~" else part)
    return raw.encode("latin-1").decode(errors="surrogatepass")


@given(TRICKY)
def test_from_each_part_that_is_not_too_long_what_it_was_made_from_can_be_read_back(text: str) -> None:
    part = objects.part(text)
    assert LONG.search(part) or decoded(part) == text


@example("x" * 400, "x" * 180)
@given(TRICKY, TRICKY)
def test_what_is_built_from_any_parts_is_a_key_under_its_prefix(session: str, name: str) -> None:
    key = objects.media_key(session, name, "image/png")
    assert objects.refused_key(key) == ""
    assert key.startswith(objects.media_prefix(session))
    assert key.count("/") == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("memory", "memory"),
        ("owner:terminal", "owner~3Aterminal"),
        ("", "~"),
        ("..", "~2E~2E"),
        (".env", "~2Eenv"),
        ("a\x00b\n", "a~00b~0A"),
        ("~2E", "~7E2E"),
        ("é", "~C3~A9"),
    ],
)
def test_a_part_stays_readable(text: str, part: str) -> None:
    assert objects.part(text) == part


def test_a_part_that_is_too_long_is_cut_and_keeps_apart_from_its_like() -> None:
    one, other = objects.part("at://" * 100 + "a"), objects.part("at://" * 100 + "b")
    assert len(one) <= 180
    assert one != other


@pytest.mark.parametrize(
    "key",
    [
        "", "/", "a//b", "/a", "a/", "a/../b", "a/./b", ".hidden", "a/.b", "a b", "a\x00", "a\n", "é", "a\\b",
        "SOUL.md.meta.json", "x" * 221, "/".join(["x" * 100] * 10),
    ],
)  # fmt: skip
def test_what_was_not_built_here_is_no_key(key: str) -> None:
    assert objects.refused_key(key)


def test_the_layout_is_the_one_that_others_know() -> None:
    assert objects.workspace_key("rowan", "GOALS.md") == "agents/rowan/GOALS.md"
    assert objects.workspace_key("rowan", "memory/2026-11-22.md") == "agents/rowan/memory/2026-11-22.md"
    assert objects.workspace_key("rowan", "skills/tea/SKILL.md") == "agents/rowan/skills/tea/SKILL.md"
    assert objects.archive_key("rowan", "5f1c") == "agents/rowan/sessions/5f1c.jsonl.gz"
    assert objects.archive_key("rowan", "5f1c", epoch_ms=17) == "agents/rowan/sessions/5f1c-part17.jsonl.gz"
    assert objects.skill_key("tea") == "skills/tea/SKILL.md"
    assert objects.media_key("owner:terminal", "u", "image/jpeg") == "media/owner~3Aterminal/u.jpg"


def test_a_session_named_like_a_part_of_another_has_an_archive_of_its_own() -> None:
    assert objects.archive_key("rowan", "5f1c-part17") != objects.archive_key("rowan", "5f1c", epoch_ms=17)


@pytest.mark.parametrize(
    ("mime", "extension"),
    [
        ("IMAGE/PNG", "png"),
        ("image/svg+xml; charset=utf-8", "svg"),
        ("audio/mp4", "m4a"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
        ("text/html", "bin"),
        ("../../etc", "bin"),
    ],
)
def test_the_ending_tells_the_kind(mime: str, extension: str) -> None:
    assert objects.extension_of(mime) == extension
