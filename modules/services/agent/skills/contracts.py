"""Which sections the code asks of which skill, and which variables each may use. Checked once, at start."""

from __future__ import annotations

from collections.abc import Mapping

_NONE: frozenset[str] = frozenset()

SKILL_CONTRACTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "core": {
        "Ground Rules": frozenset(),
        "Foreign Text": frozenset({"kind", "author", "uri", "boundary", "text"}),
        "Probe": frozenset(),
        "Nudge": frozenset(),
    },
    "grounding": {
        "System Prompt": frozenset(),
        "User Message": frozenset(),
    },
    "owner-communication": {
        "System Prompt": frozenset({"bluesky_username", "owner_handle", "today", "situation"}),
    },
    "bluesky-response": {
        "System Prompt": frozenset({"bluesky_username", "owner_handle"}),
        "User Message Template": frozenset(
            {
                "today",
                "reason",
                "author",
                "relationship",
                "uri",
                "cid",
                "conversation",
                "post",
                "notes",
            }
        ),
        "Relationship": frozenset({"interactions", "sentiment"}),
        "Notes": frozenset({"depth", "own_replies"}),
        "No Conversation": frozenset(),
    },
    "bluesky-tools": {
        **{
            f"Descriptions / {tool}": _NONE
            for tool in (
                "bluesky_post",
                "bluesky_reply",
                "bluesky_like",
                "bluesky_repost",
                "graceful_exit",
                "stay_silent",
                "bluesky_follow",
                "bluesky_unfollow",
                "bluesky_get_timeline",
                "bluesky_get_notifications",
                "bluesky_get_profile",
                "bluesky_get_followers",
                "bluesky_get_follows",
            )
        },
        "Answers / Post Not Sent": _NONE,
        "Answers / Own Handle": frozenset({"handle"}),
        "Answers / Reply Not Sent": frozenset({"problem"}),
        "Answers / instructions": _NONE,
        "Answers / repeats": _NONE,
        "Answers / repeats them": _NONE,
        "Answers / thanks": _NONE,
        "Answers / No Reply": _NONE,
        "Answers / Liked Instead": frozenset({"reason"}),
        "Answers / No Closing Message": _NONE,
        "Answers / Left": _NONE,
        "Answers / Owner Waits": _NONE,
        "Answers / Silent": _NONE,
        "Answers / No Follow Record": _NONE,
        "Answers / Not In Thread": _NONE,
        "Answers / Post Unnamed": _NONE,
        "Answers / By Did": _NONE,
        "Answers / Blocked": frozenset({"reason"}),
        "Answers / Held": _NONE,
    },
    "own-tools": {
        **{
            f"Descriptions / {tool}": _NONE
            for tool in (
                "memory_search",
                "memory_history",
                "memory_save",
                "profile_update",
                "complete_commissioning",
                "self_read",
                "self_update",
                "skill_load",
                "space_decide",
            )
        },
        "Answers / Not Remembered": frozenset({"reason"}),
        "Answers / Memory Form": frozenset({"most"}),
        "Answers / Remembered": _NONE,
        "Answers / Remembered As": frozenset({"number"}),
        "Answers / Day Form": frozenset({"given"}),
        "Answers / Nothing Found": _NONE,
        "Answers / No Memory": frozenset({"number"}),
        "Answers / Own Session": _NONE,
        "Answers / Profile Not Changed": frozenset({"reason"}),
        "Answers / Profile Changed": frozenset({"field"}),
        "Answers / First Talk Over": _NONE,
        "Answers / Tell First": _NONE,
        "Answers / Ask First": _NONE,
        "Answers / Noted First Talk": _NONE,
        "Answers / Self Empty": _NONE,
        "Answers / Self Changed": frozenset({"moved"}),
        "Answers / Self Held": frozenset({"reason"}),
        "Answers / Self Not Changed": frozenset({"reason"}),
        "Answers / No Skill": frozenset({"names"}),
        "Answers / No Message": _NONE,
        "Answers / Example Repeated": _NONE,
        "Answers / Question Repeated": _NONE,
        "Answers / Noted": _NONE,
    },
    "bluesky-pictures": {
        "Picture": frozenset({"description"}),
        "Not Loaded": frozenset({"description"}),
    },
    "expression": {
        "System Prompt": frozenset({"bluesky_username", "richness_note"}),
        "User Message Template": frozenset({"today", "source", "prompt", "recent_posts"}),
        "Richness Note": frozenset(),
        "Revision": frozenset({"draft", "problem", "choice_example", "bounded_example"}),
        "Advice / Wide Question": _NONE,
        "Advice / Half Artifact": _NONE,
        "Advice / No Question": _NONE,
        "Advice / Nothing": _NONE,
        "No Posts": _NONE,
    },
    "expression-prompts": {
        "Invitation Suffix": frozenset(),
        "Fallback Prompts": frozenset(),
        "Invitation Prompts": frozenset(),
        "Prompt Templates": frozenset({"value", "value1", "value2"}),
    },
    "memory": {
        "Recalled": frozenset({"entries"}),
        "Entry": frozenset({"id", "kind", "subject", "body", "tags", "when", "importance"}),
        "Foreign Entry": frozenset({"id", "kind", "when", "importance", "frame"}),
        "Left Out": frozenset({"count"}),
        "Profile": frozenset({"agent", "user"}),
    },
    "workspace": {
        "Headings": frozenset(),
        "Identity": frozenset({"name", "emoji"}),
        "Tools": frozenset({"tools"}),
        "Skill Line": frozenset({"name", "description", "when"}),
        "Cut": frozenset({"count"}),
        "Runtime": frozenset({"today", "timezone", "host", "version", "mode", "model"}),
    },
    "memory-extraction": {
        "System Prompt": frozenset({"agent_name"}),
        "User Message Template": frozenset({"date", "transcript"}),
        "Summary Message": frozenset({"summary"}),
    },
    "prosoche": {
        "Attention": frozenset({"what", "when", "why", "count", "place"}),
        "Degraded": frozenset({"service", "since", "avoid"}),
        "Avoid": frozenset(),
    },
    "commitments": {
        "System Prompt": frozenset({"bluesky_username"}),
        "Announcement Message": frozenset({"promise", "what"}),
        "Announcement Tool": frozenset(),
        "Extraction": frozenset({"agent_name"}),
        "Extraction Message": frozenset({"replies", "repo", "conversation"}),
        "Enrichment": frozenset(),
        "Enrichment Message": frozenset({"title", "repo", "description", "conversation"}),
    },
    "commissioning": {
        "System Prompt": frozenset({"owner_handle", "today"}),
        "Opening": frozenset(),
    },
    "space-participation": {
        "System Prompt": frozenset({"agent_name"}),
        "User Message Template": frozenset(
            {"today", "agent_name", "present", "typing", "context", "conversation", "notes"}
        ),
        "Notes": frozenset({"names", "links"}),
        "Repository": frozenset({"repo"}),
        "Request": frozenset({"request", "seconds", "cycles"}),
        "Ownership": frozenset({"owner"}),
        "Role": frozenset({"owner"}),
        "Saturation": frozenset({"agents", "own"}),
        "Context": frozenset({"items"}),
        "Peer": frozenset({"name", "voice", "interests", "learning", "essence", "reflection", "relationship"}),
        "Progress": frozenset({"workspace", "plan", "done", "total", "active", "blocked"}),
        "Relationship": frozenset({"value"}),
        "Config": frozenset(
            {
                "cooldown_min_ms",
                "cooldown_max_ms",
                "reply_delay_min_ms",
                "reply_delay_max_ms",
                "reflection_every_n",
                "behavior_notes",
                "last_adjusted_at",
                "last_adjusted_reason",
            }
        ),
    },
    "space-action": {
        "System Prompt": frozenset({"agent_name"}),
        "User Message Template": frozenset({"request", "repo", "problem"}),
    },
    "space-judgement": {
        "Judge System Prompt": frozenset(),
        "Judge Message": frozenset({"said", "candidate"}),
        "Confirm System Prompt": frozenset(),
        "Confirm Message": frozenset({"first", "second"}),
        "Confirm Examples": frozenset(),
        "Intent System Prompt": frozenset(),
        "Intent Message": frozenset({"content"}),
        "First Look System Prompt": frozenset(),
        "First Look Message": frozenset({"said"}),
        "First Look Examples": frozenset(),
    },
}
