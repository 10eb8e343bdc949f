"""The names of the AT Protocol SDK that are used here; nothing else imports it.

Methods of the network are called by name, and the session is kept here. So the SDK's whole client, with its
cryptography, and its two modules with a class for each method, 15,000 lines each, are not loaded until somebody uses
one of their names: they are most of the cost of importing the SDK. It ships no types: its values are `Any` here.
"""

import importlib
import importlib.util
import sys
from types import ModuleType


class _Deferred(ModuleType):
    """A module that is imported when a name in it is first used; a submodule of it is imported without it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        # NOTE(self): an importer that got this module keeps it, and asks it for more names later.
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
