"""Proves the budget of a whole SOUL: a quiet day costs nothing, a word what the ledger says, no budget no call."""

from tests.running_town import RunningTown, awake


async def test_a_quiet_day_makes_no_model_call_and_a_word_from_somebody_makes_one(running_town: RunningTown) -> None:
    home = running_town.make_home("ada")
    running_town.account("friend")
    async with awake(home) as life:

        async def nothing_new(times: int) -> None:
            for name in ["awareness"] * times + ["heartbeat", "identity-watch", "session-refresh", "outbox"]:
                await life.app.scheduler.run_guarded(name)

        await nothing_new(times=12)
        assert running_town.mind.asked == []
        running_town.network.post_as(running_town.account("friend"), "@ada.test tin or slate?")
        await life.look()
        answered = len(running_town.mind.asked)
        assert answered > 0
        await nothing_new(times=4)
        assert len(running_town.mind.asked) == answered
        report = await life.app.services.budget.report()
        assert (report.calls, report.tokens.reserved) == (answered, 0)
        assert report.tokens.used > 0
        (thought,) = await life.app.services.journal.recent(1, kinds=["model"])
        said = thought.entry.data
        assert (said["importance"], said["step"], said["usd"]) == ("stranger", "normal", None)


async def test_without_a_budget_everything_is_heard_and_no_model_is_asked(running_town: RunningTown) -> None:
    home = running_town.make_home("ada", BUDGET_TOKENS_PER_DAY="0")
    running_town.network.post_as(running_town.account("friend"), "@ada.test tin or slate?")
    async with awake(home) as life:
        await life.look()
        await life.look()
        assert running_town.mind.asked == []
        told = [
            item for item in await life.app.services.journal.recent(50, kinds=["life"]) if item.entry.loop == "budget"
        ]
        assert [item.entry.data["step"] for item in told] == ["listen"]
        assert any("no model call" in message for _, message, _ in life.console.lines)
