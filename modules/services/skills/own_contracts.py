"""Which sections the code asks of the skills for what is the SOUL's own: its tools, and reflection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from modules.services.experiences.types import ExperienceType

_NONE: frozenset[str] = frozenset()

OWN_CONTRACTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "own-tools": {
        **{
            f"Descriptions / {tool}": _NONE
            for tool in (
                "memory_search",
                "talk_search",
                "memory_history",
                "memory_save",
                "profile_update",
                "complete_commissioning",
                "day_read",
                "self_read",
                "self_update",
                "skill_load",
                "space_decide",
                "more_tools",
            )
        },
        **{
            f"Families / {family}": _NONE
            for family in ("bluesky", "pictures", "github", "pull_requests", "workspace", "self")
        },
        "Answers / No Family": frozenset({"names"}),
        "Answers / Family Open": frozenset({"names"}),
        "Answers / Not Remembered": frozenset({"kinds"}),
        "Answers / Memory Form": frozenset({"most"}),
        "Answers / Remembered": _NONE,
        "Answers / Remembered As": frozenset({"number"}),
        "Answers / Day Form": frozenset({"given"}),
        "Answers / Nothing Found": _NONE,
        "Answers / More Found": frozenset({"count"}),
        "Answers / In The Room": _NONE,
        "Answers / No Memory": frozenset({"number"}),
        "Answers / Own Session": _NONE,
        "Answers / Profile Not Changed": frozenset({"reason"}),
        "Answers / Profile Changed": frozenset({"field"}),
        "Answers / Tell First": _NONE,
        "Answers / Ask First": _NONE,
        "Answers / Noted First Talk": _NONE,
        "Answers / Day Not Read": frozenset({"reason"}),
        "Answers / Self Empty": _NONE,
        "Answers / Self Changed": frozenset({"moved"}),
        "Answers / Needs Experience": _NONE,
        "Answers / One Source": _NONE,
        "Answers / Gives Orders": _NONE,
        "Answers / Self Held": frozenset({"reason"}),
        "Answers / Self Not Changed": frozenset({"reason"}),
        "Answers / No Skill": frozenset({"names"}),
        "Answers / No Message": _NONE,
        "Answers / Noted": _NONE,
    },
    "reflection": {
        "System Prompt": _NONE,
        "User Message Template": frozenset(
            {
                *("today", "since", "experiences", "with_others", "insights", "relationships", "posts", "sent_back"),
                *("changes", "taken_back", "reader"),
            }
        ),
        "Since": frozenset({"days", "total"}),
        **{f"Kinds / {kind}": _NONE for kind in get_args(ExperienceType)},
        "Experience": frozenset({"name", "where", "who", "about"}),
        "Experience Of Stranger": frozenset({"name", "where", "number", "about"}),
        "Post": frozenset({"text", "replies", "likes"}),
        "Owner Took Back": frozenset({"lines"}),
        "Sent Back": frozenset({"tool", "text", "why", "count"}),
        "Reader / Room": _NONE,
        "Reader / Owner": _NONE,
        "Reader / Ordered": _NONE,
    },
}
