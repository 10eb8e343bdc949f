"""Proves that a day on which nothing is new costs nothing: no loop asks the model just to look."""

from tests.living import World, awake


async def test_a_quiet_day_makes_no_model_call_and_a_word_from_somebody_makes_one(world: World) -> None:
    home = world.make_home("ada")
    world.account("friend")
    async with awake(home) as life:

        async def nothing_new(times: int) -> None:
            for name in ["awareness"] * times + ["heartbeat", "identity-watch", "session-refresh", "outbox"]:
                await life.app.scheduler.run_guarded(name)

        await nothing_new(times=12)
        assert world.mind.asked == []
        world.network.post_as(world.account("friend"), "@ada.test tin or slate?")
        await life.look()
        answered = len(world.mind.asked)
        assert answered > 0
        await nothing_new(times=4)
        assert len(world.mind.asked) == answered
