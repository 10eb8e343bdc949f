"""A stream that is sealed with a passphrase: pieces of authenticated ciphertext in their order, the last one marked.

The key is derived by scrypt. A piece that is changed, left out, moved or cut off is found; nothing of it is read.
"""

from __future__ import annotations

import hashlib
import os
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from common.errors import StorageError, UsageError

MAGIC = b"soul-sealed-1\n"

_SALT_BYTES, _TAG_BYTES = 16, 16
_PIECE_BYTES = 64 * 1024
_SCRYPT = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}


class SealingWriter:
    """Writes to `file` sealed; `close` marks the end and leaves `file` open."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        salt = os.urandom(_SALT_BYTES)
        self._file = file
        self._cipher = _cipher(passphrase, salt)
        self._number = 0
        self._waiting = bytearray()
        file.write(MAGIC + salt)

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) > _PIECE_BYTES:  # the last piece is never known before the end
            self._put(bytes(self._waiting[:_PIECE_BYTES]), is_last=False)
            del self._waiting[:_PIECE_BYTES]
        return len(data)

    def close(self) -> None:
        self._put(bytes(self._waiting), is_last=True)

    def _put(self, piece: bytes, *, is_last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), piece, None))
        self._number += 1


class SealedReader:
    """Reads what `SealingWriter` wrote to `file`, which stands behind `MAGIC`.

    Raises:
        UsageError: the passphrase is another one.
        StorageError: the file was changed, or is not whole.

    """

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        self._file = file
        self._cipher = _cipher(passphrase, file.read(_SALT_BYTES))
        self._number = 0
        self._next = file.read(_PIECE_BYTES + _TAG_BYTES)
        self._ready = bytearray()
        if not self._next:
            raise _changed()

    def read(self, size: int) -> bytes:
        while len(self._ready) < size and self._next:
            self._open_piece()
        taken = bytes(self._ready[:size])
        del self._ready[:size]
        return taken

    def _open_piece(self) -> None:
        piece, self._next = self._next, self._file.read(_PIECE_BYTES + _TAG_BYTES)
        try:
            self._ready += self._cipher.decrypt(_nonce(self._number, is_last=not self._next), piece, None)
        except InvalidTag:
            if self._number == 0:
                problem = "The passphrase does not open this backup, or its beginning was changed"
                raise UsageError(problem, remedy="Give the passphrase with which it was made.") from None
            raise _changed() from None
        self._number += 1


def _changed() -> StorageError:
    return StorageError("The backup was changed or is not whole", remedy="Take another copy of it.")


def _cipher(passphrase: str, salt: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(hashlib.scrypt(passphrase.encode(), salt=salt, **_SCRYPT))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
