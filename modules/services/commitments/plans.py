"""Makes ready what a commitment to a plan needs: the plan itself, before its issue is proposed.

The plan is kept with the commitment, so that each later step, also after a crash, means the same issue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock
from common.errors import Fatal, SoulError
from common.result import Err
from common.text.github_text import without_mentions
from modules.runtime.events import Publish
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.services.commitments.acts import plan_result
from modules.services.commitments.events import CommitmentsReady
from modules.services.commitments.naming import text_of, title_of
from modules.services.commitments.params import PlanParams, ReadyPlan
from modules.services.commitments.texts import TITLE_CHARS, told_origin
from modules.services.commitments.types import Progress, QueuedCommitment
from modules.services.plans.asks import asked_entry, asked_in_room
from modules.services.plans.compose import PlanComposer, PlanRequest
from modules.services.plans.docs_tasks import ensure_docs_tasks, has_docs_tasks
from modules.services.plans.parse import TITLE_MARK
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.repository import repository_view
from modules.services.plans.standing import pages_of, standing_plan
from modules.services.plans.types import Plan
from modules.services.plans.wishes import Wish, wish_mark
from modules.services.plans.words import plan_words
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import Phrase
from modules.services.workspaces.addresses import WORKSPACE_PREFIX

_LOOP = "commitment-fulfillment"


@dataclass(frozen=True, slots=True)
class PlanMaker:
    """Makes plans ready.

    Attributes:
        github: what stands in the repository.
        composer: asks the model for a plan.
        skills: the words that every plan has.
        attention: held while it thinks; one mind does one thing at a time.
        journal: keeps who asked for a plan that stands already.
        clock: the time.
        phrase: returns operational texts.
        publish: receives `CommitmentsReady` when a plan that found no attention may have it.

    """

    github: GitHub
    composer: PlanComposer
    skills: Skills
    attention: Attention
    journal: Journal
    clock: Clock
    phrase: Phrase
    publish: Publish

    async def prepare(self, commitment: QueuedCommitment, params: PlanParams, repo: Repo) -> Progress:
        """Return the plan to be kept with the commitment (`prepared`), or `done` where a plan stands there already."""
        if not self.attention.free:
            # NOTE(self): a step that waited here for a slow model would hold up all other commitments.
            self.attention.when_free(_LOOP, lambda: self.publish(CommitmentsReady()))
            return Progress("waits", f"busy with {self.attention.mode}")
        wanted = text_of(commitment)
        asked_at = commitment.source_thread_uri
        wish = Wish(asked_at, wanted, title_of(commitment)) if asked_at else None
        found = await standing_plan(self.github, repo, self.clock.now(), wish)
        if isinstance(found, Err):
            return Progress("put_off", found.error)
        if found.data is not None:
            cause = asked_at if _is_on_bluesky(commitment) else asked_in_room(commitment.id)
            await self.journal.record(asked_entry(repo, found.data, cause))
            return Progress("done", result=plan_result(found.data.number, found.data.html_url) | {"deduplicated": True})
        stands = await repository_view(self.github, repo, with_issues=True)
        about = PlanRequest(repo, title_of(commitment), wanted, commitment.source_reply_text, stands)
        try:
            async with self.attention.take(_LOOP):
                plan = await self.composer.compose(about)
        except Fatal:
            raise
        except SoulError as error:
            return Progress("put_off", str(error))
        if plan is None:
            return Progress("failed", "the model made no plan that has a task")
        origin = told_origin(commitment, self.phrase)
        plan = replace(plan, context="\n".join(filter(None, (plan.context, origin))))
        made = issue_of_plan(await complete_plan(plan, repo, self.github, self.skills))
        if wish:
            made["body"] += f"\n\n{wish_mark(wish.uri)}"
        kept = {"owner": repo.owner, "repo_name": repo.name, "plan": ReadyPlan(**made)}
        return Progress("prepared", prepared=params.model_copy(update=kept))


def _is_on_bluesky(commitment: QueuedCommitment) -> bool:
    return commitment.source == "bluesky" and commitment.source_thread_uri.startswith("at://")


async def complete_plan(plan: Plan, repo: Repo, github: GitHub, skills: Skills, *, beside: Iterable[Plan] = ()) -> Plan:
    """Return the plan with the checks that every plan has and, in a workspace, the tasks that make its pages.

    A page that a plan makes which is open `beside` it is left to that one.
    """
    words = plan_words(skills, repo.full_name)
    plan = replace(plan, verification=plan.verification or words.verification)
    if not repo.name.lower().startswith(WORKSPACE_PREFIX):
        return plan
    pages = await pages_of(github, repo)
    made = has_docs_tasks(task for other in beside for task in other.tasks)
    return ensure_docs_tasks(
        plan,
        words.docs,
        skip_agents_md=pages.has_agents_md or made.has_agents_md,
        skip_scenarios_md=pages.has_scenarios_md or made.has_scenarios_md,
    )


def issue_of_plan(plan: Plan) -> dict[str, str]:
    """Return the `title` and the `body` of the issue of a plan, which notify nobody."""
    title = without_mentions(f"{TITLE_MARK} {plan.title}")
    return {"title": title[:TITLE_CHARS], "body": without_mentions(generate_plan_markdown(plan))}
