"""Sends OpenTelemetry spans of model calls, tools and agents to the owner's collector, by its conventions for AI.

A span holds names of the program, of the model and of its tools, counts, and the type of an error. It holds no text of
a prompt, answer or argument, no name but the SOUL's own, and no secret. Without an address no library is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from common.errors import ConfigError
from common.installation import command_for_extra
from common.settings import Settings
from common.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

Operation: TypeAlias = Literal["chat", "execute_tool", "invoke_agent"]
Attributes: TypeAlias = Mapping[str, str | int | Sequence[str]]
Note: TypeAlias = Callable[[Attributes], object]
"""Adds attributes to a span before it ends."""

_EXPORT_S, _CLOSE_S = 3, 5.0
_PROVIDER = "openai"
"""The API that the model service implements; who runs the service is not known."""


def _nothing(_: Attributes) -> None:
    """Ignore the attributes."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Opens spans with `tracer`; does nothing if that is None."""

    tracer: Tracer | None = None

    def span(self, operation: Operation, of: str, attributes: Attributes) -> AbstractContextManager[Note]:
        """Open a span for `operation` on `of`: a model, a tool or an agent. An error that leaves it fails the span."""
        return nullcontext(_nothing) if self.tracer is None else _span(self.tracer, operation, of, attributes)


@contextmanager
def _span(tracer: Tracer, operation: Operation, of: str, attributes: Attributes) -> Iterator[Note]:
    from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - an extra

    # NOTE(self): the message of an error may quote anybody, so the library must not record the exception.
    with tracer.start_as_current_span(
        f"{operation} {of}",
        kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
        attributes={"gen_ai.operation.name": operation, **attributes},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span.set_attributes
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise


def model_attributes(model: str) -> Attributes:
    """Return the attributes that name the model and the API that its service implements."""
    return {"gen_ai.provider.name": _PROVIDER, "gen_ai.request.model": model}


def open_tracing(settings: Settings, stack: AsyncExitStack) -> Tracing:
    """Return what opens spans; when `stack` closes, queued spans are sent, or dropped after some seconds.

    Raises:
        ConfigError: an address is set, and the libraries of the extra are not installed.

    """
    if not settings.otel_exporter_otlp_endpoint:
        return Tracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - the same
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the same
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - the same
    except ImportError:
        raise ConfigError(
            "Settings: OTEL_EXPORTER_OTLP_ENDPOINT needs libraries that are not installed",
            remedy=f"Install them: `{command_for_extra('otel')}`; or take that setting out.",
        ) from None
    told = {"service.name": "soul", "service.instance.id": settings.agent_name, "service.version": __version__}
    provider = TracerProvider(resource=Resource.create(told), shutdown_on_exit=False)
    address = f"{settings.otel_exporter_otlp_endpoint}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(address, timeout=_EXPORT_S)))

    async def close() -> None:
        await asyncio.wait([asyncio.create_task(asyncio.to_thread(provider.shutdown))], timeout=_CLOSE_S)

    stack.push_async_callback(close)
    return Tracing(provider.get_tracer("soul", __version__))
