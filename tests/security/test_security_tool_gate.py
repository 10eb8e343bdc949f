"""Proves what a SOUL's own tools may do among a stranger's words, for every tool that the program has."""

from itertools import product

from pydantic import BaseModel, ConfigDict

from adapters.atproto.types import Actor, Notification, StrongRef
from common.provenance import Provenance
from modules.lives.bluesky.types import ExpressionTurn, ThreadTurn
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.executor import Executor, Registry
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from tests.running_town import RunningTown, awake
from tests.shipped_skills import SHIPPED

STRANGER, PEER, SELF, OWNER = Provenance

# Each of these answers the person who wrote, looks at what is public anyway, or does nothing. A tool that reads
# private files, changes what the SOUL is, runs code or goes to an address has no place here.
FOR_ANYONE = {
    *("bluesky_reply", "bluesky_like", "graceful_exit", "stay_silent", "data_request", "bluesky_get_profile"),
    *("bluesky_get_followers", "bluesky_get_follows", "bluesky_post_found", "bluesky_reply_picture"),
    *("memory_search", "memory_history", "memory_save"),
}
LEAVES_NO_ACT = {
    "graceful_exit",
    "stay_silent",
    "data_request",
    "memory_save",
    "schedule_add",
    "schedule_remove",
    "want_to_know",
}
THE_OWNERS_OWN_WORDS = {
    "mute_account",
    "withdraw_act",  # takes back what waits; nothing leaves
    "want_to_know",  # a question that waits; nothing leaves
    "plan_claim_task",  # what is done then asks all rules by itself
    "profile_update",
    "talk_forget",
    "pause_acts",  # lets less leave
    "schedule_add",
    "schedule_remove",
    "self_improve",  # begins a proposal, which waits for approval itself
    "complete_commissioning",
    "web_browse_images",
    "web_fetch",
    "curl_fetch",
    "mark_attribution_followup",
    "update_post_attribution",
}
"""Changes that rest on what the owner wrote, word for word, and requests to an address. Among others' words they are
refused, not held."""


class Anything(BaseModel):
    """Accepts any arguments, as only the gate is tested."""

    model_config = ConfigDict(extra="allow")


def subjects() -> list[object]:
    ref = StrongRef("at://did:plc:kit/app.bsky.feed.post/1", "cid")
    notification = Notification(ref.uri, ref.cid, Actor("did:plc:kit", "kit.test"), "mention", "…", "", "")
    return [None, ThreadTurn(notification, root=ref, is_owner=False), ExpressionTurn("values", "…")]


async def all_tools(running_town: RunningTown) -> list[Tool]:
    async with awake(running_town.make_home("rowan")) as life:
        return list(life.app.lives.turn_services.turn_runner.executor.registry)


def spied(tools: list[Tool], ran: list[tuple[str, Turn]]) -> Executor:
    """Return an executor of the same tools with the same rights, which only note their calls in `ran`."""

    def spy(tool: Tool) -> Tool:
        async def handler(arguments: BaseModel, turn: Turn) -> ToolResult:
            ran.append((tool.name, turn))
            return ToolResult("done")

        return Tool(
            tool.name,
            tool.description,
            Anything,
            tool.capability,
            tool.needs,
            handler,
            subject=tool.subject,
            effect=tool.effect,
            holdable=tool.holdable,
        )

    return Executor(Registry([spy(tool) for tool in tools], social_only=False), SHIPPED)


async def test_no_tool_does_what_the_words_in_its_turn_do_not_allow(running_town: RunningTown) -> None:
    tools, ran = await all_tools(running_town), list[tuple[str, Turn]]()
    executor = spied(tools, ran)
    turns = [
        Turn("test", words, subject=subject, origin=asked_by)
        for asked_by, words, subject in product(Provenance, Provenance, subjects())
        if words <= asked_by
    ]
    for turn, tool in product(turns, tools):
        ran.clear()
        offered = {spec.name for spec in executor.registry.specs(turn)}
        result = await executor.execute(ToolCall("1", tool.name, {}), turn)
        assert (tool.name in offered) == bool(ran) == (not result.is_error), tool.name
        for _, seen in ran:
            check(tool, turn.asked_by, turn.provenance, hold=bool(seen.hold))


def check(tool: Tool, asked_by: Provenance, words: Provenance, *, hold: bool) -> None:
    """Assert that it was right to run the tool."""
    if asked_by is STRANGER:
        assert tool.name in FOR_ANYONE
    if tool.effect == "look":
        assert asked_by >= tool.needs
    elif hold:
        assert (asked_by, tool.holdable) == (OWNER, True)
        assert words < OWNER
    else:
        assert words >= tool.needs
        assert not (asked_by is OWNER and words < OWNER and tool.name not in LEAVES_NO_ACT)


async def test_every_act_that_needs_trust_can_wait_for_a_yes(running_town: RunningTown) -> None:
    acts = [tool for tool in await all_tools(running_town) if tool.effect != "look" and tool.needs > STRANGER]
    assert {tool.name for tool in acts} >= {"bluesky_post", "bluesky_repost", "bluesky_follow", "bluesky_unfollow"}
    assert {tool.name for tool in acts if not tool.holdable} == THE_OWNERS_OWN_WORDS
