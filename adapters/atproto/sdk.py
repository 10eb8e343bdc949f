"""The one door to the AT Protocol SDK: what we use of it, by name.

Importing it costs a second and 50 MB, so only the modules that speak to the network import this one, and those are
loaded when a client is built. The SDK ships no types: behind this door its values are `Any`.
"""

from __future__ import annotations

from atproto_client import AsyncClient
from atproto_client.exceptions import (
    AtProtocolError,
    InvokeTimeoutError,
    RequestErrorBase,
)
from atproto_client.models.dot_dict import DotDict
from atproto_client.request import AsyncRequest, Response

__all__ = [
    "AsyncClient",
    "AsyncRequest",
    "AtProtocolError",
    "DotDict",
    "InvokeTimeoutError",
    "RequestErrorBase",
    "Response",
]
