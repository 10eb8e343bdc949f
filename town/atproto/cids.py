"""Content addresses exactly as AT Protocol makes them, so that a record here and on Bluesky has the same cid."""

from __future__ import annotations

import base64
import hashlib

import libipld

from town.atproto.values import Json

_DAG_CBOR = 0x71
_RAW = 0x55


def record_cid(value: Json) -> str:
    """The cid of a record given as JSON; `$link` and `$bytes` are read as links and bytes."""
    return _cid(_DAG_CBOR, libipld.encode_dag_cbor(_from_json(value)))


def blob_cid(content: bytes) -> str:
    """The cid of a file."""
    return _cid(_RAW, content)


def link_bytes(cid: str) -> bytes:
    """The binary form of a base32 cid. Raises `ValueError`."""
    raw = base64.b32decode(cid[1:].upper() + "=" * (-(len(cid) - 1) % 8))
    libipld.decode_cid(raw)
    return raw


def _cid(codec: int, content: bytes) -> str:
    raw = bytes((1, codec, 0x12, 32)) + hashlib.sha256(content).digest()
    return "b" + base64.b32encode(raw).decode().rstrip("=").lower()


def _from_json(value: object) -> object:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$link"}:
        return link_bytes(value["$link"])
    if set(value) == {"$bytes"}:
        return base64.b64decode(value["$bytes"] + "==")
    return {key: _from_json(item) for key, item in value.items()}
