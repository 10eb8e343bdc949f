"""Proves what the owner's collector receives about a turn, by real OTLP over loopback, and what it never receives."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from common.errors import ConfigError
from modules.runtime.tracing import open_tracing
from tests.running_town import KEY, PASSWORD, RunningTown, awake, call, replying, settings_of
from town.serving import serve

WORDS = "which roof is louder in the rain"
ANSWER = "Slate, whoever asks."


def told(attributes: list[KeyValue]) -> dict[str, object]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in attributes}


async def sent_of_a_turn(running_town: RunningTown) -> list[bytes]:
    """Return all that a collector received while a post was answered."""
    sent: list[bytes] = []

    async def take(request: Request) -> Response:
        sent.append(await request.body())
        return Response(status_code=200, media_type="application/x-protobuf")

    running_town.account("rowan")
    running_town.network.post_as(running_town.account("kit"), f"Morning @rowan.test, {WORDS}?")
    async with (
        serve(Starlette(routes=[Route("/v1/traces", take, methods=["POST"])])) as collector,
        awake(running_town.make_home("rowan", OTEL_EXPORTER_OTLP_ENDPOINT=collector)) as soul,
    ):
        await soul.look()
    return sent


async def test_a_turn_is_told_in_the_words_of_the_conventions_and_none_of_its_own(running_town: RunningTown) -> None:
    running_town.mind.answer = replying(ANSWER)
    sent = await sent_of_a_turn(running_town)
    assert running_town.texts("rowan")
    spans: list[Span] = [
        span
        for body in sent
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    reply = next(span for span in spans if span.name == "execute_tool bluesky_reply")
    turn = next(span for span in spans if span.span_id == reply.parent_span_id)
    chat = next(span for span in spans if span.parent_span_id == turn.span_id and span.name == "chat test-mind")
    assert turn.name == "invoke_agent rowan"
    assert chat.kind == Span.SPAN_KIND_CLIENT
    known = told(list(chat.attributes))
    assert (known["gen_ai.operation.name"], known["gen_ai.request.model"]) == ("chat", "test-mind")
    assert isinstance(used := known["gen_ai.usage.input_tokens"], int)
    assert used > 0
    assert told(list(reply.attributes))["gen_ai.tool.name"] == "bluesky_reply"
    everything = b"".join(sent)
    for secret in (WORDS, ANSWER, "did:", running_town.account("kit"), "kit.test", KEY, PASSWORD):
        assert secret.encode() not in everything


async def test_an_error_is_told_by_its_kind_and_a_tool_that_is_none_of_ours_by_no_name(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = lambda _: call("tell_everybody_of_kit")
    everything = b"".join(await sent_of_a_turn(running_town))
    assert b"execute_tool unknown" in everything
    assert b"error.type" in everything
    assert b"tell_everybody" not in everything


async def test_without_the_extra_an_address_is_refused_with_a_remedy_and_without_an_address_nothing_is_loaded(
    running_town: RunningTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings = settings_of(running_town.make_home("rowan"))
    async with AsyncExitStack() as stack:
        assert open_tracing(settings, stack).tracer is None
        wanted = settings.model_copy(update={"otel_exporter_otlp_endpoint": "http://127.0.0.1:9"})
        with pytest.raises(ConfigError, match="not installed") as refused:
            open_tracing(wanted, stack)
    assert "otel" in refused.value.remedy
