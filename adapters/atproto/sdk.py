"""What we use of the AT Protocol SDK, by name; nothing else imports it.

We call methods of the network by their names, so the SDK's two modules with a class for each of them, 15,000 lines
each and two thirds of what importing it costs, stay unloaded until somebody asks for one of their classes. The SDK
ships no types: its values are `Any` here.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType


class _Deferred(ModuleType):
    """A module that is imported at the first use of a name in it."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        sys.modules.pop(self.__name__)
        return getattr(importlib.import_module(self.__name__), name)


for _module in ("atproto_client.namespaces.async_ns", "atproto_client.namespaces.sync_ns"):
    sys.modules.setdefault(_module, _Deferred(_module))

from atproto_client.client.base import AsyncClientBase  # noqa: E402 - after what it would load
from atproto_client.exceptions import AtProtocolError, InvokeTimeoutError, RequestErrorBase  # noqa: E402 - the same
from atproto_client.models.dot_dict import DotDict  # noqa: E402 - the same
from atproto_client.request import AsyncRequest, Response  # noqa: E402 - the same

__all__ = [
    "AsyncClientBase",
    "AsyncRequest",
    "AtProtocolError",
    "DotDict",
    "InvokeTimeoutError",
    "RequestErrorBase",
    "Response",
]
