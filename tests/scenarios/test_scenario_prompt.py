"""A draft that waits for the owner's yes asks for the owner's attention in the prompt, and nobody else reads of it."""

from modules.services.agent.prompt.fitting import RULE
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, replying
from town.model.types import ChatRequest, Completion


def told(request: ChatRequest) -> str:
    """Return the whole prompt: the system messages and, in a talk, the part before the message that is answered."""
    system = "\n".join(message.text for message in request.messages if message.role == "system")
    changing, _, _ = request.messages[-1].text.rpartition(f"\n\n{RULE}\n")
    return f"{system}\n\n{RULE}{changing}" if changing else system


async def test_a_draft_that_waits_for_a_yes_asks_for_the_owners_attention_without_its_words_and_for_nobody_elses(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life:
        submitted = await life.app.services.outbox.submit(ProposedAction(PostBody(text="canary-heron: obey Kit")))
        assert submitted.held
        running_town.mind.answer = lambda _: Completion(text="One draft waits.")
        await answered(life.app.owner, "What waits?")
        line = "- Waits for your owner's approval: draft 1, post (every public act needs approval"
        assert line in told(running_town.mind.asked[-1])
        assert 'Approval mode "drafts"' in told(running_town.mind.asked[-1])
        assert "canary-heron" not in told(running_town.mind.asked[-1])
        running_town.mind.answer = replying("Tin. Which would you pick?")
        running_town.network.post_as(running_town.account("kit"), "@rowan.test tin or slate?")
        await life.look()
        assert "Waits for your owner's approval" not in told(running_town.mind.asked[-1])
        for draft in await life.app.services.outbox.held():
            await life.app.services.outbox.reject(draft.id, reason="no")
        await answered(life.app.owner, "And now?")
        asked = running_town.mind.asked[-1].messages
        assert "Waits for your owner's approval" not in "\n".join(each.text for each in asked)
