"""The one door to the language model: deadlines, retries, and calm with what small models do.

Stateless between calls but for what a service taught about itself (a parameter that it refuses), which is forgotten
at restart. A call that dies with the process leaves nothing behind but its reservation at the wall, which then counts
in full.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import httpx

from common.clock import Clock
from common.constants import (
    LLM_CALL_TIMEOUT_S,
    LLM_CLASSIFIER_MIN_TOKENS,
    LLM_MAX_OUTPUT_TOKENS,
    LLM_MAX_RETRIES,
    SECOND_MS,
)
from common.errors import ModelRefused, PolicyBlocked, SoulError, Transient
from common.redact import Redactor
from modules.console import Console
from modules.llm_gateway.messages import convert_messages, convert_tools
from modules.llm_gateway.policy import (
    Verdict,
    adapt_request,
    calculate_backoff,
    classify_llm_error,
    one_line,
    retry_after_ms,
    was_refused,
)
from modules.llm_gateway.salvage import find_calls, looks_cut, parse_arguments, without_thinking
from modules.llm_gateway.stream import Answer, BrokenStream
from modules.llm_gateway.types import (
    ChatResult,
    Importance,
    Message,
    NamedTool,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
)
from modules.llm_gateway.wall import Request, Reservation, Wall

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CUT_RETRY_FACTOR = 4
_REMEDIES = {
    401: "Check AI_GATEWAY_API_KEY in .env.",
    402: "Check the billing of the model service that AI_GATEWAY_API_KEY belongs to.",
    403: "Check that AI_GATEWAY_API_KEY may use the model named by AI_GATEWAY_MODEL.",
}
_REFUSED_REMEDY = "Check AI_GATEWAY_API_KEY in .env, and the billing of its model service."
_MICRO = 1_000_000


class _CallFailed(Exception):
    """One attempt failed; its cause is the error itself."""

    def __init__(self, verdict: Verdict, hint_ms: float | None) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict
        self.hint_ms = hint_ms


@dataclass(slots=True)
class _Tally:
    """For whom one conversation turn is, and what it has taken so far."""

    purpose: str
    importance: Importance
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)

    def add(self, reservation: Reservation, micro_usd: int | None, counted: Usage | None = None) -> None:
        """One attempt: what the service counted, and what it cost, or may have."""
        self.usage += Usage(
            counted.input_tokens if counted else 0,
            counted.output_tokens if counted else 0,
            None if micro_usd is None else micro_usd / _MICRO,
            reservation.step,
            str(reservation.request["model"]),
        )


class LLMGateway:
    """Speaks to one OpenAI-compatible service with one model.

    Args:
        base_url: the service, for example `https://gateway.example/v1`.
        api_key: its key.
        model: the model's name there.
        clock: for waits between attempts and for measuring.
        rng: for jitter, and for ids that a service forgot.
        console: hears about retries.
        wall: what each attempt must pass, and is counted by.
        redactor: masks the secrets that somebody wrote into what the model is told.
        on_usage: called once per answered call with the result and its purpose.
        transport: makes what the requests travel by.
        call_timeout_s: deadline of each attempt, in seconds, stream included.
        max_retries: attempts after the first, for what is transient.

    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        clock: Clock,
        rng: Random,
        console: Console,
        wall: Wall,
        redactor: Redactor | None = None,
        on_usage: Callable[[ChatResult, str], None] | None = None,
        transport: Callable[[], httpx.AsyncBaseTransport],
        call_timeout_s: float = LLM_CALL_TIMEOUT_S,
        max_retries: int = LLM_MAX_RETRIES,
    ) -> None:
        self.model = model
        self._base_url = base_url
        self._api_key = api_key
        self._clock = clock
        self._rng = rng
        self._console = console
        self._wall = wall
        self._redactor = redactor or Redactor()
        self._on_usage = on_usage
        self._transport = transport
        self._call_timeout_s = call_timeout_s
        self._max_retries = max_retries
        self._openai: AsyncOpenAI | None = None
        self._lessons: list[Verdict] = []

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        max_tokens: int | None = None,
        temperature: float | None = None,
        purpose: str = "",
        importance: Importance = "own",
    ) -> str:
        """The text of a plain answer; "" when the model has nothing to say. Raises as `chat_with_tools` does."""
        result = await self.chat_with_tools(
            messages,
            system=system,
            max_tokens=max_tokens,
            temperature=temperature,
            purpose=purpose,
            importance=importance,
        )
        return result.text

    async def chat_with_tools(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ToolSpec] = (),
        tool_choice: ToolChoice = "auto",
        max_tokens: int | None = None,
        temperature: float | None = None,
        purpose: str = "",
        importance: Importance = "own",
    ) -> ChatResult:
        """Ask once, and keep asking while that may help.

        Args:
            messages: the whole conversation; the service remembers nothing.
            system: the system prompt.
            tools: what may be called; none offered, none sent.
            tool_choice: `required` and `NamedTool` force a call, as far as the model obeys.
            max_tokens: limit of the answer, raised to the floor that reasoning models need.
            temperature: left out if None, or if the service refuses it.
            purpose: one word for the records.
            importance: for whom; decides who may still speak when the day's budget runs low.

        Raises:
            BudgetExceeded: the next attempt does not fit into the day's budget, or is not important enough for what
                is left of it.
            ModelRefused: the service refuses for good (key, billing, permission).
            Transient: every attempt failed in a way that may pass.
            PolicyBlocked: the prompt is too long for the model.
            SoulError: the service rejects the request, and would again.

        """
        offered, required = _offer(tools, tool_choice)
        limit = max(max_tokens or LLM_MAX_OUTPUT_TOKENS, LLM_CLASSIFIER_MIN_TOKENS)
        request: Request = {
            "model": self.model,
            "messages": self._redactor.value(convert_messages(messages, system)),
            "max_tokens": limit,
            "stream_options": {"include_usage": True},
        }
        if offered:
            request |= {"tools": convert_tools(offered), "tool_choice": "required" if required else "auto"}
        if temperature is not None:
            request["temperature"] = temperature
        tally, started = _Tally(purpose, importance), self._clock.monotonic()
        result = self._read(await self._ask(request, tally), offered, required=required)
        if _cut_short(result, offered):
            larger = request | {"max_tokens": limit * CUT_RETRY_FACTOR}
            result = self._read(await self._ask(larger, tally), offered, required=required)
        result = _settled(result, tally, self._clock.monotonic() - started)
        if self._on_usage:
            self._on_usage(result, purpose)
        return result

    async def aclose(self) -> None:
        """Close the connections."""
        if self._openai is not None:
            await self._openai.close()
            self._openai = None

    async def _ask(self, request: Request, tally: _Tally) -> Answer:
        """Attempts, waits and adapted requests, until there is an answer or no hope of one."""
        for verdict in self._lessons:
            request = adapt_request(request, verdict) or request
        failures = 0
        while True:
            tally.attempts += 1
            try:
                return await self._attempt(request, tally)
            except _CallFailed as failed:
                verdict, hint_ms, error = failed.verdict, failed.hint_ms, failed.__cause__
                adapted = adapt_request(request, verdict)
                if adapted is not None:
                    self._lessons.append(verdict)
                    request = adapted
                    continue
                if verdict.kind != "transient":
                    raise _refusal(verdict, self.model) from error
                if failures >= self._max_retries:
                    self._console.line("warn", f"model call failed after {tally.attempts} attempts", verdict.message)
                    retry_after = None if hint_ms is None else hint_ms / SECOND_MS
                    raise Transient(
                        f"The model service is unavailable: {verdict.message}", retry_after=retry_after
                    ) from error
            wait_s = calculate_backoff(failures, hint_ms, self._rng.random) / SECOND_MS
            failures += 1
            self._console.line(
                "warn",
                f"model call failed, waiting {wait_s:.0f} s (retry {failures}/{self._max_retries})",
                verdict.message,
            )
            await self._clock.sleep(wait_s)

    async def _attempt(self, request: Request, tally: _Tally) -> Answer:
        """One request and its whole stream, within the deadline. Every call to the model passes here, and the wall."""
        client, sdk_error = await self._client()
        leave = await self._wall.reserve(request, purpose=tally.purpose, importance=tally.importance)
        answer = Answer()
        try:
            async with asyncio.timeout(self._call_timeout_s):
                stream = await client.chat.completions.create(**leave.request, stream=True)
                async with stream:
                    async for chunk in stream:
                        answer.add(chunk)
            if answer.finish is None:
                raise BrokenStream("the stream ended in the middle of the answer")
        except (sdk_error, httpx.HTTPError, OSError, json.JSONDecodeError) as error:
            if was_refused(error, getattr(error, "status_code", None)):
                await self._wall.release(leave)
            else:
                tally.add(leave, leave.micro_usd)
            raise _CallFailed(*self._judge(error)) from error
        tally.add(leave, await self._wall.settle(leave, answer.usage, answer.weight), answer.usage)
        return answer

    async def _client(self) -> tuple[AsyncOpenAI, type[Exception]]:
        # NOTE(self): the SDK takes a second to import; nobody should wait for it before the first thought.
        openai = await asyncio.to_thread(importlib.import_module, "openai")
        if self._openai is None:
            http_client = httpx.AsyncClient(transport=self._transport(), timeout=self._call_timeout_s)
            self._openai = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key,
                max_retries=0,
                timeout=self._call_timeout_s,
                http_client=http_client,
            )
        return self._openai, openai.OpenAIError

    def _judge(self, error: Exception) -> tuple[Verdict, float | None]:
        """What the error means, and the wait in milliseconds that the service asks for."""
        response = getattr(error, "response", None)
        body = getattr(error, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        verdict = classify_llm_error(error, getattr(error, "status_code", None), getattr(error, "code", None))
        if isinstance(said, str) and said:
            verdict = Verdict(verdict.kind, one_line(said), verdict.status)
        return verdict, None if response is None else retry_after_ms(response.headers, self._clock.now())

    def _read(self, answer: Answer, offered: Sequence[ToolSpec], *, required: bool) -> ChatResult:
        """The answer in our own words, with calls salvaged from what the model wrote."""
        text = without_thinking(answer.text).strip()
        calls: list[ToolCall] = []
        for raw in answer.calls:
            arguments, malformed = parse_arguments(raw.arguments)
            calls.append(ToolCall(raw.id or self._new_id(), raw.name, arguments, malformed))
        if not calls and offered:
            text, found = find_calls(text, offered, required=required)
            calls = [ToolCall(self._new_id(), call.name, call.arguments) for call in found]
        cut = answer.finish == "length"
        whole = any(not call.malformed for call in calls)
        return ChatResult(
            text=text,
            tool_calls=tuple(calls),
            stop_reason="tool_use" if whole or (calls and not cut) else "max_tokens" if cut else "end_turn",
            model=answer.model,
        )

    def _new_id(self) -> str:
        return f"call_{self._rng.getrandbits(64):016x}"


def _offer(tools: Sequence[ToolSpec], choice: ToolChoice) -> tuple[Sequence[ToolSpec], bool]:
    """Which tools to send, and whether a call is required.

    A service may ignore the object form of `tool_choice`; a single tool that is required cannot be misread.
    """
    if isinstance(choice, NamedTool):
        offered = [tool for tool in tools if tool.name == choice.name]
        if not offered:
            raise ValueError(f"{choice.name} is forced but not among the tools")
        return offered, True
    return tools, choice == "required" and bool(tools)


def _cut_short(result: ChatResult, offered: Sequence[ToolSpec]) -> bool:
    """Whether the limit left nothing usable: no text at all, or half of a call."""
    if result.stop_reason != "max_tokens":
        return False
    return not result.text or bool(result.tool_calls) or (bool(offered) and looks_cut(result.text))


def _settled(result: ChatResult, tally: _Tally, seconds: float) -> ChatResult:
    return ChatResult(
        text=result.text,
        tool_calls=result.tool_calls,
        stop_reason=result.stop_reason,
        usage=tally.usage,
        model=result.model or tally.usage.model,
        attempts=tally.attempts,
        seconds=seconds,
    )


def _refusal(verdict: Verdict, model: str) -> SoulError:
    status = f" (HTTP {verdict.status})" if verdict.status else ""
    if verdict.kind == "fatal":
        remedy = _REMEDIES.get(verdict.status or 0, _REFUSED_REMEDY)
        return ModelRefused(f"The model service refuses{status}: {verdict.message}", remedy=remedy)
    if verdict.kind == "too_long":
        return PolicyBlocked(
            f"The prompt is too long for {model}: {verdict.message}",
            remedy="Choose a model with a larger context by AI_GATEWAY_MODEL, or shorten SELF.md.",
        )
    return SoulError(
        f"The model service rejects the request{status}: {verdict.message}",
        remedy="Check AI_GATEWAY_MODEL and AI_GATEWAY_BASE_URL in .env.",
    )
