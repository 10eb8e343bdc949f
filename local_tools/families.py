"""The tools that are offered only after the model opens their family, so that a turn of the owner's begins with few.

A tool in no family is offered at once. A family does not change who may use a tool, or when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from common.provenance import Provenance
from local_tools.words import OWN_TOOLS, ToolWords
from modules.services.agent.tools.executor import MORE_TOOLS, Registry
from modules.services.agent.tools.policy import allowed
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.skills import Skills

COMMANDS = "commands"
"""The family that, once open, also lists what the owner can type."""
FAMILIES: Mapping[str, Sequence[str]] = {
    "bluesky": (
        *("bluesky_reply", "bluesky_like", "bluesky_repost", "bluesky_limit_replies", "bluesky_delete_post"),
        *("withdraw_act", "bluesky_unfollow", "mute_account"),
        *("bluesky_get_followers", "bluesky_get_follows"),
    ),
    "reading": (
        *("bluesky_search", "bluesky_read_feed", "bluesky_read_list", "bluesky_trends", "want_to_know"),
        "github_read_repository",
    ),
    "pictures": (
        *("arena_search", "arena_fetch_channel", "arena_post_image", "web_browse_images", "curl_fetch"),
        *("bluesky_post_with_image", "lookup_post_context", "get_posts_needing_attribution"),
        *("format_source_attribution", "mark_attribution_followup", "update_post_attribution"),
    ),
    "github": (
        *("github_get_repo", "github_list_issues", "github_list_org_repos"),
        *("github_list_my_orgs", "github_get_user", "github_create_issue", "github_update_issue", "github_comment"),
        *("github_star_repo", "github_follow_user"),
    ),
    "pull_requests": (
        *("github_list_pull_requests", "github_create_pr_comment", "github_review_pr"),
        *("github_create_pr", "github_merge_pr"),
    ),
    "workspace": (
        *("workspace_create", "workspace_find", "create_memo", "plan_create", "plan_claim_task", "workspace_finish"),
    ),
    "self": (
        "self_read",
        "self_update",
        "profile_update",
        "skill_propose",
        "memory_history",
        "talk_forget",
        "self_improve",
    ),
    "schedules": ("schedule_add", "schedule_list", "schedule_remove"),
    COMMANDS: ("pause_acts",),
}
"""The tools of each family; the skill `own-tools` describes the families to the model."""
_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}


class MoreToolsInput(BaseModel):
    """The family to open."""

    family: str


def in_families(tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return the tools, each in its family."""
    return [replace(tool, family=_FAMILY_OF.get(tool.name, "")) for tool in tools]


def registry_of(tools: Sequence[Tool], skills: Skills, *, social_only: bool, commands: Sequence[str]) -> Registry:
    """Return a registry of the tools, each in its family, and of the one that opens a family.

    `commands` are those that the owner can type, one line each.

    Raises:
        ValueError: two tools have the same name, or a family names a tool that does not exist.
        SkillError: the skill lacks the description of a family.

    """
    if missing := _FAMILY_OF.keys() - {tool.name for tool in tools}:
        raise ValueError(f"no such tool: {', '.join(sorted(missing))}")
    placed = in_families(tools)
    words = ToolWords(skills, OWN_TOOLS)

    async def open_family(args: MoreToolsInput, turn: Turn) -> ToolResult:
        # NOTE(self): the call itself opens it: the registry reads the conversation, which survives a restart.
        usable = [tool for tool in placed if tool.family and allowed(tool, turn, social_only=social_only)]
        names = [tool.name for tool in usable if tool.family == args.family.strip()]
        if not names:
            return words.error("No Family", names=", ".join(dict.fromkeys(tool.family for tool in usable)))
        unmixed = replace(turn, provenance=turn.asked_by)
        missing = [
            tool.name
            for tool in placed
            if tool.family == args.family.strip()
            and tool.name not in names
            and allowed(tool, unmixed, social_only=social_only)
        ]
        listed = "\n".join(commands) if args.family.strip() == COMMANDS else ""
        return words.done("Family Open", names=", ".join(names), missing=", ".join(missing), commands=listed)

    opening = words.tool(MORE_TOOLS, MoreToolsInput, "self", Provenance.OWNER, open_family, effect="look")
    told = {family: skills.subsection(OWN_TOOLS, "Families", family).strip() for family in FAMILIES}
    return Registry((*placed, opening), social_only=social_only, families=told)
