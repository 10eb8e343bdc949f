"""An S3 service on loopback, and the stores that every test of storage is run against."""

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from werkzeug.serving import make_server

from adapters.storage.local import Credentials, Storage, open_storage
from tests.loopback import NO_TLS

KINDS = ("file", "memory", "s3")
WHO = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI")


@dataclass(frozen=True)
class S3:
    """A running service. It handles one request at a time, so that what it checked still holds when it writes."""

    address: str

    def new_bucket(self) -> str:
        """Create a bucket and return its URL."""
        name = f"soul-{uuid.uuid4().hex}"
        httpx.put(f"{self.address}/{name}", verify=NO_TLS).raise_for_status()
        return self.url(name)

    def url(self, bucket: str) -> str:
        return f"s3://{bucket}?endpoint={self.address}&region=us-east-1"


@contextmanager
def serving_s3() -> Iterator[S3]:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield S3(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def open_kind(kind: str, folder: Path, s3: S3) -> Storage:
    """Open a fresh store of that kind."""
    url = {"file": "", "memory": "memory://", "s3": s3.new_bucket() if kind == "s3" else ""}[kind]
    return open_storage(url, root=folder / "store", credentials=WHO, deadline_s=10)
