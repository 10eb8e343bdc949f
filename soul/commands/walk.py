"""`soul walk`: runs each activity once, in order, and shows the outcome of each."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated

import typer

from common.clock import SystemClock
from common.errors import Fatal, SoulError
from common.facts import QuestionFacts
from common.provenance import Provenance
from common.settings import Settings
from common.wording import counted
from modules.lives.github.respond import LOOP as GITHUB
from modules.runtime.control import forget_starts
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Message
from modules.runtime.scheduler.policy import Outcome
from modules.services.agent.tools.types import Turn
from modules.services.own_feed.policy import answered_sources
from soul.app import App, open_soul
from soul.commands import options
from soul.commands.at_hand import settings_to_run
from soul.commands.people import forget_who_is_due
from soul.commands.waking import refuse_moved
from soul.terminal.plain import PlainConsole

Step = Callable[[App], Awaitable[Outcome]]


def run_walk(
    root: options.Home,
    *,
    social_only: options.SocialOnly = False,
    skip_proposal: Annotated[
        bool, typer.Option("--skip-proposal", "-s", help="Propose nothing to get better at.")
    ] = False,
) -> bool:
    """Run all steps; return whether every one succeeded."""
    settings = settings_to_run(root)
    home = Home.at(root, settings.memory_dir)
    refuse_moved(home)
    if home.database.exists():
        forget_who_is_due(settings, home)
    steps = {name: step for name, step in _STEPS.items() if not (skip_proposal and step is _propose)}
    return asyncio.run(_walk(settings, home, steps, social_only=social_only))


async def _walk(settings: Settings, home: Home, steps: Mapping[str, Step], *, social_only: bool) -> bool:
    clock = SystemClock()
    console = PlainConsole(clock, timezone=settings.soul_timezone)
    async with open_soul(
        settings, home, console=console, clock=clock, rng=random.Random(), social_only=social_only
    ) as app:
        await app.wake()
        succeeded = True
        for name, step in steps.items():
            console.line("act", name)
            succeeded &= await _take(app, name, step, console)
        await app.services.lease.give_back()
    forget_starts(home.memory)  # a walk does not count as a start
    return succeeded


async def _take(app: App, name: str, step: Step, console: PlainConsole) -> bool:
    """Run one step and show its outcome; return whether it succeeded. No error but `Fatal` stops the other steps."""
    try:
        outcome = await step(app)
    except Fatal:
        raise
    except SoulError as error:
        console.line("error", f"{name}: {error}", error.remedy)
        return False
    except Exception as error:
        console.line("error", f"{name}: {type(error).__name__}: {error}")
        return False
    console.line("done" if outcome.ran else "error", name, outcome.reason)
    return outcome.ran


async def _ground(app: App) -> Outcome:
    services = app.services
    turn_result = await app.lives.turn_services.turn_runner.run_turn(
        turn=Turn(loop="walk", provenance=Provenance.SELF, cause_id="walk", importance="owner"),
        system=await app.lives.turn_services.prompter.prompt(
            skill="grounding",
            audience="owner",
            session_key="owner:walk",
            now=services.clock.now(),
            least=Provenance.SELF,
        ),
        messages=[Message("user", services.skills.render("grounding", "User Message"))],
        purpose="grounding",
        only=(),
        about=QuestionFacts("grounding"),
    )
    return Outcome(ran=True, reason=turn_result.text)


async def _look(app: App) -> Outcome:
    return await app.scheduler.run_guarded("awareness")


async def _express(app: App) -> Outcome:
    async with app.services.attention.take("expression-check"):
        return await app.lives.bluesky.expression.express()


async def _engage(app: App) -> Outcome:
    outcome = await app.scheduler.run_guarded("engagement")
    resonated = answered_sources(app.lives.bluesky.expressions.all())
    told = f"; readers answered most: {', '.join(resonated)}" if resonated else ""
    return replace(outcome, reason=f"{outcome.reason}{told}")


async def _look_at_github(app: App) -> Outcome:
    if not any(loop.name == GITHUB for loop in app.scheduler.states()):
        return Outcome(ran=True, reason="no account there, or a social-only life")
    return await app.scheduler.run_guarded(GITHUB)


async def _drain(app: App) -> Outcome:
    return await app.scheduler.run_guarded("outbox")


async def _propose(app: App) -> Outcome:
    told = await app.lives.growth.craft.propose_now()
    await app.scheduler.run_guarded("work")
    return Outcome(ran=True, reason=told)


async def _sum_up(app: App) -> Outcome:
    people = app.services.relationships
    (total, positive, recurring), closest = await people.counts(), await people.closest()
    grown = (
        f"knows {total} accounts, {positive} of them kind, {recurring} that come often"
        f"{': ' + ', '.join(closest) if closest else ''}; "
        f"{counted(len(people.reflection.insights), 'insight')} since SELF.md was last changed"
    )
    return Outcome(ran=True, reason=f"{await app.status_report.line()}; {grown}")


_STEPS: dict[str, Step] = {
    "Grounding": _ground,
    "Awareness": _look,
    "Expression": _express,
    "Engagement": _engage,
    "GitHub": _look_at_github,
    "Outbox": _drain,
    "Proposal": _propose,
    "Summary": _sum_up,
}
