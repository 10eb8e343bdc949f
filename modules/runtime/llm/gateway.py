"""The only client of the language model: deadlines, retries, and tolerance for what small models do.

It keeps nothing between calls except what the models showed about their service (a parameter that it refuses, pictures
that it cannot see) and how much of the latest prompts was cached; both are forgotten at restart. A call that dies with
the process leaves nothing behind except its reservation, which then counts in full.
"""

import asyncio
import base64
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol, TypeAlias

import httpx

from adapters.web.client import http_transport_factory
from common.clock import Clock, doubled, iso
from common.constants import LLM_IDLE_TIMEOUT_S, LLM_LEAST_OUTPUT_TOKENS, SECOND_MS
from common.errors import BudgetExceeded, Fatal, PromptTooLong, SoulError, Transient
from common.facts import TurnFacts
from common.files import append_bounded
from common.json_lines import json_line
from common.provenance import Importance
from common.redact import Redactor
from common.settings import Settings
from modules.runtime.console import Console
from modules.runtime.home import Home
from modules.runtime.llm.answers import cut_short, read
from modules.runtime.llm.connection import (
    BudgetGuard,
    Connection,
    Request,
    Reservation,
    ServiceQuirks,
    Vision,
    probe_of,
)
from modules.runtime.llm.dialect import (
    CACHE_KEY,
    EXTRA_FIELDS,
    FACTS,
    Block,
    ChatResult,
    Image,
    Message,
    PromptBlock,
    Text,
    ToolChoice,
    ToolSpec,
    Usage,
    Wire,
    chars_of,
    convert_messages,
    convert_tools,
    has_pictures,
    has_thoughts,
    pictures_in,
)
from modules.runtime.llm.policy import (
    ACCOUNT_STATUS,
    LLM_MAX_RETRIES,
    OUTAGE_FIRST_S,
    OUTAGE_LONGEST_S,
    TRIED_AGAIN,
    CallVerdict,
    answer_limit,
    calculate_backoff,
    gives_no_sign,
    is_own_service,
    refusal,
    timed_out,
    was_refused,
)
from modules.runtime.llm.stream import StreamedAnswer
from modules.runtime.service_health import ServiceHealth

Hydrate: TypeAlias = Callable[[str], Awaitable[tuple[str, bytes] | None]]
"""Returns the media type and the bytes under a key of the media store; None if they are gone."""

MOST_PICTURES = 8
"""Only the newest are sent: services accept only so many, and each one costs."""


async def shown(messages: Sequence[Message], hydrate: Hydrate | None) -> tuple[list[Message], list[str]]:
    """Return the messages with those pictures that can be shown, and in the same order what goes into their URLs.

    Without `hydrate` all pictures become their descriptions.
    """
    left = 0 if hydrate is None else MOST_PICTURES
    seen: list[Message] = []
    urls: list[str] = []
    for message in reversed(messages):
        if isinstance(message.content, str):
            seen.append(message)
            continue
        blocks: list[Block] = []
        for block in reversed(message.content):
            url = await _url(block, hydrate) if isinstance(block, Image) and hydrate and left else ""
            if url:
                left -= 1
                urls.append(url)
            blocks.append(Text(block.alt) if isinstance(block, Image) and not url else block)
        seen.append(replace(message, content=tuple(reversed(blocks))))
    return seen[::-1], urls[::-1]


async def _url(picture: Image, hydrate: Hydrate) -> str:
    found = await hydrate(picture.key) if picture.key else None
    if found is None:
        return ""
    mime, data = found
    return f"data:{mime or picture.mime};base64,{base64.b64encode(data).decode()}"


REMEMBERED_CALLS = 200


class CacheMeter:
    """Remembers the latest counted calls: the tokens of their input, and how many of them the service had cached."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque(maxlen=REMEMBERED_CALLS)

    def note(self, usage: Usage) -> None:
        """Record the usage of one answer, unless its input was not counted."""
        if usage.input_tokens:
            self._seen.append((usage.input_tokens, usage.cached_tokens))

    @property
    def share(self) -> float | None:
        """The part of the input that was cached, 1 for all; None before the first counted call."""
        sent = sum(tokens for tokens, _ in self._seen)
        return sum(cached for _, cached in self._seen) / sent if sent else None


CUT_RETRY_FACTOR = 4
CUT_MARK = " […]"
"""Follows a text whose rest the limit cut off."""
_MICRO = 1_000_000
_ILL = frozenset({"transient", "fatal", "elsewhere"})
_UNDONE = frozenset({"unknown", "fatal", "elsewhere"})
"""Errors for which a service that answers with something else than a stream did nothing."""
_SLOW_REMEDY = "If it is only slow, set AI_GATEWAY_IDLE_TIMEOUT_S in .env to more seconds."


class _CallFailed(Exception):
    """One attempt failed; `__cause__` is the error itself."""

    def __init__(self, verdict: CallVerdict, hint_ms: float | None, sent: Request) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict
        self.hint_ms = hint_ms
        self.sent = sent
        self.is_probe = False


@dataclass(slots=True)
class _Outage:
    """How many calls in a row met no sign of the service, how the last one failed, and when the next may go."""

    calls: int = 0
    until: float = 0.0
    message: str = ""
    remedy: str = ""


@dataclass(slots=True)
class _Tally:
    """The purpose and importance of one call, and what it has used so far."""

    purpose: str
    importance: Importance
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)

    def add(self, reservation: Reservation, micro_usd: int | None, counted: Usage | None = None) -> None:
        """Add one attempt: what the service counted, and what it cost or may have cost."""
        self.usage += Usage(
            counted.input_tokens if counted else 0,
            counted.output_tokens if counted else 0,
            None if micro_usd is None else micro_usd / _MICRO,
            reservation.step,
            str(reservation.request["model"]),
            counted.cached_tokens if counted else 0,
        )


class LLMGateway:
    """The client of one model at one OpenAI-compatible service.

    Args:
        base_url: the service, for example `https://gateway.example/v1`.
        api_key: its key.
        model: the model's name there.
        clock: for waits between attempts and for measuring.
        rng: for jitter, and for ids that a service left out.
        console: shows retries.
        budget_guard: lets each attempt go or refuses it, and counts it.
        redactor: masks secrets in the words that the model gets.
        on_usage: called once per answered call with the result and its purpose.
        on_measured: called for each answer whose input the service counted, with the model, the characters that were
            sent and the tokens that it made of them; not if pictures or thoughts would spoil the measure.
        cache_key: the key by which some services find the cached beginning of our prompts.
        answer_room: returns for how many tokens of answer the model has room beside so many characters; None if nobody
            knows.
        on_outcome: called for each attempt with whether the service did its part, and if not, the error.
        hydrate: reads a picture from the media store; None: pictures are replaced by their descriptions.
        vision: whether pictures are sent.
        reads_facts: whether the service reads the field `facts`, so that a request may carry it.
        transport: makes the HTTP transport of the requests.
        idle_timeout_s: how long each attempt waits for the first piece of the answer, and for each further one, in
            seconds. The whole answer may take as long as it needs, up to an hour.
        max_retries: attempts after the first, for transient errors.

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
        budget_guard: BudgetGuard,
        redactor: Redactor | None = None,
        on_usage: Callable[[ChatResult, str], None] | None = None,
        on_measured: Callable[[str, int, int], None] | None = None,
        answer_room: Callable[[int], int] | None = None,
        on_outcome: Callable[[bool, str], None] | None = None,
        cache_key: str = "",
        hydrate: Hydrate | None = None,
        vision: Vision = "auto",
        reads_facts: bool = False,
        transport: Callable[[], httpx.AsyncBaseTransport],
        idle_timeout_s: float = LLM_IDLE_TIMEOUT_S,
        max_retries: int = LLM_MAX_RETRIES,
    ) -> None:
        self.model = model
        self.reads_facts = reads_facts
        self._is_own = is_own_service(base_url)
        self._clock = clock
        self._rng = rng
        self._console = console
        self._budget_guard = budget_guard
        self._redactor = redactor or Redactor()
        self._on_usage = on_usage
        self._on_measured = on_measured
        self._answer_room = answer_room
        self._on_outcome = on_outcome
        self._cache_key = cache_key
        self._hydrate = hydrate
        self._idle_timeout_s = idle_timeout_s
        self._max_retries = max_retries
        self._connection = Connection(
            base_url=base_url, api_key=api_key, transport=transport, clock=clock, idle_timeout_s=idle_timeout_s
        )
        self._quirks = ServiceQuirks(base_url=base_url, vision=vision)
        self.cache = CacheMeter()
        self._silent = False  # whether the last request met no sign of a service that works
        self._outage = _Outage()

    def sees(self) -> bool:
        """Return whether pictures are sent to the model, as far as is known."""
        return self._hydrate is not None and self._quirks.sees(self.model)

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        system: str | Sequence[PromptBlock] = "",
        max_tokens: int | None = None,
        temperature: float | None = None,
        purpose: str = "",
        importance: Importance = "own",
        facts: TurnFacts | None = None,
    ) -> str:
        """Return the text of a plain answer; "" if the model has nothing to say. Raises as `chat_with_tools` does."""
        result = await self.chat_with_tools(
            messages,
            system=system,
            max_tokens=max_tokens,
            temperature=temperature,
            purpose=purpose,
            importance=importance,
            facts=facts,
        )
        return result.text

    async def chat_with_tools(
        self,
        messages: Sequence[Message],
        *,
        system: str | Sequence[PromptBlock] = "",
        tools: Sequence[ToolSpec] = (),
        tool_choice: ToolChoice = "auto",
        max_tokens: int | None = None,
        temperature: float | None = None,
        purpose: str = "",
        importance: Importance = "own",
        facts: TurnFacts | None = None,
    ) -> ChatResult:
        """Ask the model, and retry while that may help.

        Args:
            messages: the whole conversation; the service remembers nothing.
            system: the system prompt; in blocks, so that the service can cache what stays the same.
            tools: the tools that may be called; without any, none are sent.
            tool_choice: `required` forces a call, as far as the model obeys it.
            max_tokens: length of the answer; what a model may need to think before it is added.
            temperature: left out if None, or if the service refuses it.
            purpose: one word for the records.
            importance: for whom the call is; decides whether it may go when the day's budget runs low.
            facts: the facts of the turn as data; sent only to a service that reads them.

        Raises:
            BudgetExceeded: the next attempt does not fit into the day's budget, or is not important enough for what
                is left of it.
            ModelRefused: the service refuses for good (key, billing, permission), even a small request.
            Transient: every attempt failed in a way that may pass, or no model is behind the address.
            PromptTooLong: the prompt is too long for the model.
            SoulError: the service rejects the request or its content, and would again.

        """
        required = tool_choice == "required" and bool(tools)
        request: Request = {
            "model": self.model,
            "messages": await self._worded(messages, system),
            "max_tokens": 0,
            "stream_options": {"include_usage": True},
        }
        if tools:
            request |= {"tools": convert_tools(tools), "tool_choice": "required" if required else "auto"}
        if temperature is not None:
            request["temperature"] = temperature
        if facts and self.reads_facts:
            request[EXTRA_FIELDS] = {FACTS: replace(facts, purpose=purpose).as_json(self._redactor.value)}
        if self._cache_key:
            request[CACHE_KEY] = self._cache_key
        room = self._answer_room(chars_of(request)) if self._answer_room else None
        request["max_tokens"] = answer_limit(max_tokens, room)
        tally, started = _Tally(purpose, importance), self._clock.monotonic()
        answer, limit = await self._ask_within(request, tally)
        result = read(answer, tools, required=required, new_id=self._new_id)
        longer = answer_limit(limit * CUT_RETRY_FACTOR, room)
        if cut_short(result, tools) and longer > limit:
            larger = request | {"max_tokens": longer}
            # NOTE(self): a service refuses it without room beside the prompt (vLLM) or above its model's limit.
            try:
                result = read(await self._ask(larger, tally), tools, required=required, new_id=self._new_id)
            except SoulError as error:
                if isinstance(error, BudgetExceeded | Fatal | Transient):
                    raise
        if result.stop_reason == "max_tokens":
            self._console.line("warn", "an answer of the model was cut at its greatest length", purpose)
        result = _settled(result, tally, self._clock.monotonic() - started)
        if self._on_usage:
            self._on_usage(result, purpose)
        return result

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _worded(self, messages: Sequence[Message], system: str | Sequence[PromptBlock]) -> list[Wire]:
        """Return the conversation for the wire, with secrets masked and pictures put in."""
        seen, urls = await shown(messages, self._hydrate if self.sees() else None)
        wire: list[Wire] = self._redactor.value(convert_messages(seen, system))
        for picture, url in zip(pictures_in(wire), urls, strict=True):
            picture["url"] = url
        return wire

    async def _ask_within(self, request: Request, tally: _Tally) -> tuple[StreamedAnswer, int]:
        """Return the answer and its limit, which is the least one if the service has no room for another."""
        limit = int(request["max_tokens"])
        try:
            return await self._ask(request, tally), limit
        except PromptTooLong:
            # NOTE(self): vLLM refuses a request whose prompt and limit together exceed the context.
            if limit <= LLM_LEAST_OUTPUT_TOKENS:
                raise
        return await self._ask(request | {"max_tokens": LLM_LEAST_OUTPUT_TOKENS}, tally), LLM_LEAST_OUTPUT_TOKENS

    async def _ask(self, request: Request, tally: _Tally) -> StreamedAnswer:
        """Attempt, wait and adapt the request until there is an answer, or no hope of one."""
        outage, left_s = self._outage, self._outage.until - self._clock.monotonic()
        if left_s > 0 and tally.importance != "owner":
            raise Transient(outage.message, remedy=outage.remedy, retry_after=left_s)
        failures = 0
        while True:
            tally.attempts += 1
            try:
                await self._ask_whether_it_answers(request, tally)
                return await self._attempt(request, tally, self._idle_timeout_s)
            except _CallFailed as failed:
                verdict, hint_ms, error = failed.verdict, failed.hint_ms, failed.__cause__
                if self._on_outcome and verdict.kind in _ILL:
                    self._on_outcome(False, verdict.message)  # noqa: FBT003 - it failed
                adapted = self._quirks.learn(request, failed.sent, verdict)
                if adapted is not None:
                    if has_pictures(request) and not has_pictures(adapted):
                        told = f"{failed.sent['model']} did not take a picture and gets its description"
                        self._console.line("warn", told, verdict.message)
                    request = adapted
                    continue
                is_last = self._outage.calls > 0 or failures >= self._max_retries
                if verdict.kind not in TRIED_AGAIN or (is_last and verdict.kind == "missed"):
                    raise refusal(await self._narrowed(verdict, request, tally), self.model) from error
                if is_last:
                    self._console.line("warn", f"model call failed after {tally.attempts} attempts", verdict.message)
                    raise self._unavailable(failed) from error
            wait_s = calculate_backoff(failures, hint_ms, self._rng.random) / SECOND_MS
            failures += 1
            self._console.line(
                "warn",
                f"model call failed, waiting {wait_s:.0f} s (retry {failures}/{self._max_retries})",
                verdict.message,
            )
            await self._clock.sleep(wait_s)

    def _unavailable(self, failed: _CallFailed) -> Transient:
        """Return the error of the last attempt; if even a probe met no sign of the service, calls wait."""
        error = Transient(
            f"The model service is unavailable: {failed.verdict.message}",
            remedy=_SLOW_REMEDY if timed_out(failed.__cause__) else "",
            retry_after=None if failed.hint_ms is None else failed.hint_ms / SECOND_MS,
        )
        if failed.is_probe and self._silent:
            wait_s = doubled(self._clock.real(OUTAGE_FIRST_S), self._outage.calls, OUTAGE_LONGEST_S)
            error.retry_after = max(wait_s, error.retry_after or 0.0)
            until = self._clock.monotonic() + wait_s
            self._outage = _Outage(self._outage.calls + 1, until, str(error), error.remedy)
        return error

    async def _ask_whether_it_answers(self, request: Request, tally: _Tally) -> None:
        """After an attempt without a sign of the service, send a probe before the next prompt, which may be billed."""
        if not self._silent:
            return
        try:
            await self._attempt(probe_of(request), tally, self._idle_timeout_s)
        except _CallFailed as failed:
            if failed.verdict.kind == "transient":
                failed.is_probe = True
                raise

    async def _narrowed(self, verdict: CallVerdict, request: Request, tally: _Tally) -> CallVerdict:
        """Return the verdict; a refusal becomes one of this request alone if a probe is not refused as well.

        Somebody's words can make a service refuse a request; they must not end the life.
        """
        if verdict.kind != "fatal" or verdict.status in ACCOUNT_STATUS:
            return verdict
        try:
            await self._attempt(probe_of(request), tally, self._idle_timeout_s)
        except _CallFailed as failed:
            if failed.verdict.kind == "fatal":
                return verdict
        return replace(verdict, kind="this_request")

    async def _attempt(self, request: Request, tally: _Tally, idle_s: float) -> StreamedAnswer:
        """Send one request and read its stream while pieces keep coming. Every call of the model passes here."""
        await self._connection.open()
        leave = await self._budget_guard.reserve(request, purpose=tally.purpose, importance=tally.importance)
        sent, answer = self._quirks.apply(leave.request), StreamedAnswer()
        try:
            await self._connection.ask(sent, answer, idle_s)
        except asyncio.CancelledError:
            await self._budget_guard.unanswered(leave)
            raise
        except Exception as error:
            verdict, hint_ms = self._connection.judge(error)
            refused = was_refused(error, getattr(error, "status_code", None), verdict.message)
            self._silent = not answer.pieces and gives_no_sign(error, verdict)
            self._outage = self._outage if self._silent else _Outage()
            unbilled = not answer.pieces and timed_out(error) and self._is_own
            told_at_once = not answer.is_stream and not answer.pieces and verdict.kind in _UNDONE
            if unbilled or told_at_once or refused:
                await self._budget_guard.release(leave, unanswered=unbilled)
            else:
                await self._budget_guard.unanswered(leave)
                tally.add(leave, leave.micro_usd)
            raise _CallFailed(verdict, hint_ms, sent) from error
        self._silent, self._outage = False, _Outage()
        if self._on_outcome:
            self._on_outcome(True, "")  # noqa: FBT003 - it went well
        tally.add(leave, await self._budget_guard.settle(leave, answer.usage, answer.weight), answer.usage)
        self._measure(sent, answer.usage)
        return answer

    def _measure(self, sent: Request, usage: Usage | None) -> None:
        """Record how much was cached, and how many characters make a token."""
        if usage is None or not usage.input_tokens:
            return
        self.cache.note(usage)
        if self._on_measured and not (has_pictures(sent) or has_thoughts(sent)):
            self._on_measured(str(sent["model"]), chars_of(sent), usage.input_tokens)

    def _new_id(self) -> str:
        return f"{self._rng.getrandbits(36):09x}"


def _settled(result: ChatResult, tally: _Tally, seconds: float) -> ChatResult:
    is_cut = result.stop_reason == "max_tokens" and bool(result.text)
    return replace(
        result,
        text=result.text + CUT_MARK if is_cut else result.text,
        usage=tally.usage,
        model=result.model or tally.usage.model,
        attempts=tally.attempts,
        seconds=seconds,
    )


class UsageLog:
    """Appends a line for each call; a file that has grown too large becomes `<name>.1`, and a new one begins."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def note(self, result: ChatResult, purpose: str) -> None:
        """Append one answered call. Raises `StorageError`."""
        line = {
            "ts": iso(self._clock.now()),
            "purpose": purpose,
            "model": result.model,
            "input": result.usage.input_tokens,
            "cached": result.usage.cached_tokens,
            "output": result.usage.output_tokens,
            "usd": result.cost_usd,
            "attempts": result.attempts,
            "ms": round(result.seconds * 1000),
        }
        append_bounded(self._path, json_line(line))


class GatewayServices(Protocol):
    """The services from which the gateway is built."""

    settings: Settings
    home: Home
    clock: Clock
    rng: random.Random
    console: Console
    redactor: Redactor
    health: ServiceHealth
    stack: AsyncExitStack

    @property
    def budget(self) -> BudgetGuard: ...


def open_gateway(
    services: GatewayServices,
    *,
    on_measured: Callable[[str, int, int], None],
    answer_room: Callable[[int], int],
    hydrate: Hydrate,
) -> LLMGateway:
    """Return the gateway to the model of the settings; the other arguments are those of `LLMGateway`."""
    settings = services.settings
    gateway = LLMGateway(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
        clock=services.clock,
        rng=services.rng,
        console=services.console,
        budget_guard=services.budget,
        redactor=services.redactor,
        on_usage=UsageLog(services.home.usage_log, services.clock).note,
        on_measured=on_measured,
        answer_room=answer_room,
        on_outcome=partial(services.health.note, "model"),
        cache_key=settings.agent_name,
        hydrate=hydrate,
        vision=settings.ai_gateway_vision,
        reads_facts=settings.ai_gateway_facts,
        transport=http_transport_factory(settings.ai_gateway_base_url, private_ok=settings.soul_allow_private_net),
        idle_timeout_s=settings.ai_gateway_idle_timeout_s,
    )
    services.stack.push_async_callback(gateway.aclose)
    return gateway
