"""What we use of the AT Protocol SDK, by name; nothing else imports it.

We call methods of the network by their names, and keep our session ourselves. So the SDK's whole client, with its
cryptography, and its two modules with a class for each method, 15,000 lines each, stay unloaded until somebody asks for
one of their names: they are most of what importing the SDK costs. It ships no types: its values are `Any` here.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


class _Deferred(ModuleType):
    """A module that is imported at the first use of a name in it; those inside a package come without the package."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        # NOTE(self): who took this one in its place holds it still, and asks it for more names later.
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


for _module in ("atproto_client", "atproto_client.namespaces.async_ns", "atproto_client.namespaces.sync_ns"):
    if _module not in sys.modules:
        sys.modules[_module] = _Deferred(_module)

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
