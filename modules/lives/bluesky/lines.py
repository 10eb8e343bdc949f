"""How the journal and the terminal tell what became of a post."""

from __future__ import annotations

from modules.runtime.llm.types import Importance

WHO_WAITS: dict[Importance, str] = {
    "owner": "The owner has",
    "mention": "Peers have",
    "stranger": "Everybody but owner and peers has",
}
LINES = {
    "replied": "Replying to @{}",
    "liked": "Liking instead of replying to @{}",
    "left": "Leaving the talk with @{}",
    "silent": "Staying silent with @{}",
    "concluded": "No reply to @{}",
    "skipped": "No reply to @{}",
    "dropped": "Giving up on @{}",
    "undecided": "Undecided about @{}",
    "later": "@{} has to wait",
}
LINES_OF_HELD = {
    "replied": "A reply to @{} waits for your yes",
    "liked": "A like for @{} waits for your yes",
}

# NOTE(self): whoever reads the journal must not take a post that waits its turn for one that is decided.
COUNTED_AS = {"silent": "stay_silent", "later": "undecided"}
