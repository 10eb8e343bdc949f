"""Builds what lives share: services of turns (wakeup page, prompts, turn runner, archivist), and loops over `work`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from common.errors import SoulError
from common.session_keys import is_main
from common.wording import LineKind
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import PromptBlock, ToolCall
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.attention_list import AttentionList, AttentionNeeds
from modules.services.agent.one_sentence import SentenceAsker
from modules.services.agent.prompt.prompter import Changes, Prompter, PromptNotice, TurnPrompt
from modules.services.agent.prompt.sources import BOOT, CONTEXT, Peers
from modules.services.agent.tools.executor import Executor, KnownAccount, Registry
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.agent.verdicts import TIMEOUT_S, Verdicts, YesNoJudge
from modules.services.agent.wakeup.context import WakeupContext, wakeup_file
from modules.services.agent.wakeup.gathering import WakeupGathering
from modules.services.commitments.queue import CommitmentQueue
from modules.services.day.context_file import ContextFile
from modules.services.day.gathering import DayReader
from modules.services.day.situation import owner_waiting
from modules.services.exchanges import PublicPosts, SaidBefore
from modules.services.identity.identity import agent_facts
from modules.services.outbox.bodies import FollowBody
from modules.services.owner import OwnerTalk, ToldOutside
from modules.services.owner_files import OwnerFiles
from modules.services.relationships import names
from modules.services.sessions.archives import TRANSCRIPT_TOKENS, Distiller
from modules.services.sessions.archivist import Archivist, SessionTidyLoop
from modules.services.sessions.types import Session
from modules.services.wiring import build_sources, prompter_over
from modules.services.work.loop import WORK_INTERVAL_MS, WorkLoop
from modules.services.work.types import Handler, Perceiver
from soul.composition.services import Services

_EXTRACTION = "memory-extraction"
_LAST_WORDS_S = 1.0
_MOST_KNOWN = 1000


def build_attention_list(services: Services, queue: CommitmentQueue) -> AttentionList:
    """Build the list of what needs attention: waiting posts, people, rituals, drafts, and commitments that are due."""

    async def now() -> AttentionNeeds:
        return (await services.situation()).attention

    return AttentionList(
        sources=(services.rituals.attention, queue.attention),
        skills=services.skills,
        files=services.knowledge.stores.owner_files,
        timezone=services.settings.soul_timezone,
        owners=(now, services.relationships.attention),
    )


class TurnServices:
    """The wakeup page, the prompter, the asker of single sentences, the turn runner and the archivist.

    Args:
        services: the services that they use.
        registry: the tools.
        attention_list: the list of what needs attention.
        bonds: returns the closest people, one line each, closest first.
        peers: returns what the SOUL and its peers did together.

    """

    def __init__(
        self,
        services: Services,
        registry: Registry,
        attention_list: AttentionList,
        *,
        bonds: Callable[[], Awaitable[Sequence[str]]],
        peers: Peers,
    ) -> None:
        self._services = services
        self._peers = peers
        self.wakeup_context = self._build_wakeup_context(attention_list, bonds)
        self.prompter = self._build_prompter(attention_list)
        self.sentences = self._build_sentences()
        self.turn_runner = self._build_turn_runner(registry)
        self.context_file = ContextFile(
            files=services.knowledge.stores.owner_files,
            database=services.database,
            days=DayReader(services.settings, services.home, services.clock),
            skills=services.skills,
            timezone=services.settings.soul_timezone,
        )
        self.distiller = self._build_distiller()
        self.archivist = self._build_archivist()

    async def wake(self) -> None:
        """Finish prepared archives, and read the notes that the last life left; called at the start."""
        await self.archivist.finish_prepared()
        await self.wakeup_context.read()

    def _build_wakeup_context(
        self, attention_list: AttentionList, bonds: Callable[[], Awaitable[Sequence[str]]]
    ) -> WakeupContext:
        services, settings, stores = self._services, self._services.settings, self._services.knowledge.stores
        gathering = WakeupGathering(
            database=services.database,
            memories=stores.memories,
            clock=services.clock,
            name=lambda: services.identity.display_name,
            extract=services.identity.extract,
            peers=settings.soul_peers,
            attention=attention_list.read,
            bonds=bonds,
            timezone=settings.soul_timezone,
        )
        return WakeupContext(
            wakeup_file(services.home.memory),
            gather=gathering.gather,
            journal=services.journal,
            export=settings.boot_context_export,
            budget=settings.boot_context_tokens,
            estimate=stores.estimator.estimate,
        )

    def _build_sentences(self) -> SentenceAsker:
        services = self._services
        return SentenceAsker(
            lambda: services.me.bluesky_username,
            services.gateway,
            self.prompter,
            services.skills,
            services.clock,
            lambda: agent_facts(services.me, services.identity, services.soul.text),
        )

    def _build_prompter(self, attention_list: AttentionList) -> Prompter:
        services, knowledge, status = self._services, self._services.knowledge, self._services.home.memory / "status"
        sources = build_sources(
            services.settings,
            services.skills,
            services.rng,
            knowledge,
            memory_md=knowledge.sync_memory_file,
            attention_list=attention_list,
            wakeup_context=self._woken_with,
            onboarding=knowledge.onboarding.due,
            peers=self._peers,
            said_before=SaidBefore(
                outbox=services.outbox,
                posts=PublicPosts(services.atproto, services.preferences, services.moderation),
                skills=services.skills,
                rng=services.rng,
                clock=services.clock,
                me=services.me,
            ).told,
        )
        return prompter_over(
            services.settings,
            services.home,
            services.soul,
            services.skills,
            sources,
            estimator=knowledge.stores.estimator,
            tell=self._note,
            changes=Changes(status / "bootstrap-changes.jsonl", status / "bootstrap-hashes.json", services.clock),
        )

    def _build_turn_runner(self, registry: Registry) -> TurnRunner:
        services, estimator = self._services, self._services.knowledge.stores.estimator
        return TurnRunner(
            gateway=services.gateway,
            executor=Executor(
                registry,
                services.skills,
                on_call=log_call,
                redactor=services.redactor,
                console=services.console,
                judge=YesNoJudge(
                    Verdicts(services.gateway, services.skills, services.clock, TIMEOUT_S),
                    services.journal,
                    services.settings.soul_timezone,
                ),
                asks_assent=services.settings.soul_approval == "drafts",
            ),
            clock=services.clock,
            journal=services.journal,
            sessions=services.knowledge.sessions,
            estimate=estimator.estimate,
            context_tokens=partial(estimator.within, services.settings.context_tokens),
            nudge=lambda: services.skills.render("core", "Nudge"),
            on_told=self._was_told,
            resolve=partial(services.atproto.resolve_handle, fresh=True),
            known=self._known_accounts,
            agent=lambda: agent_facts(services.me, services.identity, services.soul.text),
        )

    async def _known_accounts(self) -> list[KnownAccount]:
        follows = [one for one in await self._services.outbox.of_kind("follow", _MOST_KNOWN) if one.state == "done"]
        followed = {one.body.did: one.body.handle for one in follows if isinstance(one.body, FollowBody)}
        met = await self._services.database.run(partial(names, limit=_MOST_KNOWN))
        known = ((did, handle, name, did in followed) for did, handle, name in met)
        return [*known, *((did, handle, "", True) for did, handle in followed.items())]

    def _build_distiller(self) -> Distiller:
        services, settings = self._services, self._services.settings
        return Distiller(
            gateway=services.gateway,
            system=self._extraction_prompt,
            skills=services.skills,
            redactor=services.redactor,
            rng=services.rng,
            estimate=services.knowledge.stores.estimator.estimate,
            timezone=settings.soul_timezone,
            transcript_tokens=min(TRANSCRIPT_TOKENS, settings.context_tokens // 2),
        )

    def _build_archivist(self) -> Archivist:
        services, settings, stores = self._services, self._services.settings, self._services.knowledge.stores
        return Archivist(
            sessions=services.knowledge.sessions,
            database=services.database,
            storage=stores.storage,
            distiller=self.distiller,
            journal=services.journal,
            clock=services.clock,
            agent_id=settings.agent_name,
            forget_media=stores.media.forget,
            on_kept=services.knowledge.write_day,
            on_end=partial(forget_notes, stores.owner_files),
            before_reading=services.preferences.renew,
            may_remember=services.preferences.may_be_remembered,
        )

    def owner_talk(self, situation: Callable[[], Awaitable[str]]) -> OwnerTalk:
        """Build the talk with the owner; `situation` returns how things stand, in words."""
        services, sessions = self._services, self._services.knowledge.sessions
        return OwnerTalk(
            me=services.me,
            prompter=self.prompter,
            skills=services.skills,
            turn_runner=self.turn_runner,
            sessions=sessions,
            work=services.work,
            redactor=services.redactor,
            told=ToldOutside(
                services.work,
                sessions,
                services.skills,
                services.clock,
                services.rng,
                services.settings.soul_timezone,
            ),
            archivist=self.archivist,
            onboarding=services.knowledge.onboarding,
            attention=services.attention,
            journal=services.journal,
            clock=services.clock,
            situation=situation,
            renew_context=self.context_file.renew,
            approval=services.settings.soul_approval,
            experiences=services.experiences,
        )

    def session_loop(self, is_over: Callable[[str], bool]) -> SessionTidyLoop:
        """Build the loop that ends conversations that are over, and has the archivist archive them."""
        services = self._services
        waiting = partial(services.database.run, owner_waiting)
        return SessionTidyLoop(services.knowledge.sessions, self.archivist, services.clock, is_over, waiting)

    async def leave_notes(self) -> None:
        """Write the notes that the next life reads first; give up after a second."""
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self.wakeup_context.write()
        except (TimeoutError, SoulError) as error:
            reason = str(error) or f"not done within {_LAST_WORDS_S:g} s"
            summary = "The page to wake up with was not written at the end; the one before stays"
            await self._services.journal.record_or_show(Entry("error", "stop", summary, line="warn", reason=reason))

    async def _woken_with(self, session_key: str) -> str:
        return self.wakeup_context.unread(main=is_main(session_key))

    def _was_told(self, prompt: TurnPrompt) -> None:
        if prompt.has(BOOT):
            self.wakeup_context.note_told(main=is_main(prompt.session_key))

    async def _note(self, notice: PromptNotice) -> None:
        line: LineKind = "error" if notice.level == "error" else "warn"
        await self._services.journal.record(Entry("error", "prompt", notice.summary, line=line, reason=notice.reason))

    async def _extraction_prompt(self, session: Session) -> Sequence[PromptBlock]:
        prompt = await self.prompter.prompt(
            skill=_EXTRACTION,
            audience="owner" if is_main(session.key) else "bluesky",
            session_key=session.key,
            now=self._services.clock.now(),
            bare=True,
        )
        return prompt.blocks


async def forget_notes(owner_files: OwnerFiles, session_key: str) -> None:
    """Empty CONTEXT.md if the conversation that is over was with the owner. Raises what `owner_files` raises."""
    if is_main(session_key) and await owner_files.read(CONTEXT) is not None:
        await owner_files.write(CONTEXT, "")


_ANSWER_CHARS = 500


def log_call(call: ToolCall, result: ToolResult, turn: Turn) -> None:
    """Log one tool call, with the traceback if the handler crashed."""
    log = structlog.stdlib.get_logger("soul.tools")
    facts = {"tool": call.name, "input": call.input, "loop": turn.loop, "trigger": turn.cause_id}
    facts |= {"intent": intent} if (intent := result.outcome.intent_id) else {}
    if result.traceback:
        log.error("tool broke", **facts, traceback=result.traceback)
    else:
        log.info("tool refused" if result.is_error else "tool", **facts, answer=result.content[:_ANSWER_CHARS])


def build_work_loop(
    services: Services,
    handlers: Sequence[Handler],
    perceivers: Sequence[Perceiver] = (),
    *,
    name: str = "work",
    every_ms: float = WORK_INTERVAL_MS,
    social_only: bool = True,
    at_start: bool = False,
    batch: int | None = None,
    attention: Attention | None = None,
) -> WorkLoop:
    """Build a loop over these handlers, with its own interval and name in the journal."""
    return WorkLoop(
        name=name,
        every_ms=every_ms,
        social_only=social_only,
        at_start=at_start,
        batch=batch,
        table=services.work,
        handlers=handlers,
        perceivers=perceivers,
        accepted=services.outbox.accepted,
        journal=services.journal,
        attention=attention or services.attention,
        clock=services.clock,
        standing=services.control.standing,
    )
