"""The host's messages in the room during a day: opinions, remarks, thanks, requests and follow-up questions."""

from dataclasses import dataclass
from typing import Literal

from tests.scenarios.room_day_clock import MORNING

KEEPER = "keeper"
HARBOUR, BOARD = f"{KEEPER}/harbour-notes", f"{KEEPER}/notice-board"
SEEDED = "The bench by the ferry has no name"
"""The title of the issue that is open in `BOARD` from the beginning, as number 1."""

Kind = Literal["opinion", "remark", "thanks", "issue", "comment", "post", "plan", "follow_up", "to"]
REQUESTS: frozenset[Kind] = frozenset({"issue", "comment", "post", "plan"})


@dataclass(frozen=True, slots=True)
class Line:
    """A message of the host. `at` is in seconds of the day; `asks` is the text of the request that it asks about."""

    at: float
    kind: Kind
    text: str
    asks: str = ""


def _seconds(clock: str) -> float:
    hours, minutes = map(int, clock.split(":"))
    return ((hours - MORNING.hour) * 60 + minutes - MORNING.minute) * 60.0


_TABLE: tuple[tuple[str, Kind, str], ...] = (
    ("07:02", "opinion", "Good morning. What do you make of fog that arrives on a lovely day?"),
    ("07:09", "remark", "I think the harbour bell sounds different when the air is damp."),
    ("07:21", "opinion", "Which small repair would you start a day with?"),
    ("07:40", "issue", f"Can you open an issue for a shelf of tide tables by the door in github.com/{HARBOUR}?"),
    ("07:44", "follow_up", "Did you do it?"),
    ("07:58", "thanks", "Thank you, that was quick."),
    ("08:16", "opinion", "How do you tell a good soup from a merely hot one?"),
    ("08:25", "to", "@odile, what would you plant first in a garden nobody has touched for a year?"),
    ("08:39", "remark", "I feel that a street is quieter after rain than before it."),
    ("08:54", "opinion", "Any thoughts on maps that leave out the streets?"),
    (
        "09:10",
        "issue",
        f"Could someone please open an issue about the bakery's squeaking sign in github.com/{BOARD}?",
    ),
    ("09:31", "to", "@tobias, is there a screw you would never throw away?"),
    ("09:46", "opinion", "What should a weather diary hold on a day without weather?"),
    ("10:02", "comment", f"Please comment on #1 in github.com/{BOARD} with a name that people would keep."),
    ("10:08", "follow_up", "Any news?"),
    ("10:27", "opinion", "Why do people trust a handwritten label more than a printed one?"),
    ("10:41", "remark", "I think bread is the only clock that a kitchen needs."),
    ("10:55", "thanks", "Thanks, all of you. I enjoyed that."),
    ("11:12", "post", "Could you post on Bluesky what the sea taught you this week?"),
    ("11:33", "opinion", "What does a garden know that a calendar does not?"),
    ("11:47", "to", "petra, which bench in town has the best view of nothing in particular?"),
    ("12:05", "plan", f"Please make a plan for a command that counts the lines of a file in github.com/{HARBOUR}."),
    ("12:18", "opinion", "Is there a tool that taught you patience?"),
    ("12:40", "remark", "Honestly, I have never met a barometer that I understood at once."),
    ("13:24", "opinion", "How would you explain a neap tide to a child?"),
    ("13:36", "issue", f"I need you to create an issue for the missing fog signal times in github.com/{HARBOUR}."),
    ("13:41", "follow_up", "Where is the issue?"),
    ("13:58", "opinion", "What do you listen to while a kettle makes up its mind?"),
    ("14:10", "to", "@bruno, how do you begin with a bicycle that nobody has ridden for ten years?"),
    ("14:22", "remark", "I suspect that the best recipes are the ones with a stain on them."),
    ("14:37", "opinion", "Which letter of the alphabet would you repair first?"),
    (
        "14:52",
        "comment",
        f"Can you comment on issue 1 in github.com/{BOARD} that the ferry people know best?",
    ),
    ("15:08", "opinion", "What is the first thing you look at in a stranger's kitchen?"),
    ("15:19", "to", "@hale, how many kinds of fog did the keepers tell apart?"),
    ("15:34", "issue", f"Please open an issue about seeds that go missing from the swap box in github.com/{BOARD}."),
    ("15:47", "thanks", "Lovely. Thanks for that."),
    ("16:01", "opinion", "How does a street change when its bakery closes?"),
    ("16:14", "remark", "In my experience a storm is mostly waiting."),
    ("16:27", "issue", f"Please open an issue for a map of quiet corners in github.com/{BOARD}."),
    ("16:29", "opinion", "Any ideas on how to store a hundred seed packets without losing one?"),
    ("16:46", "post", "Would someone post on Bluesky a thought about mending what still works?"),
    ("16:51", "follow_up", "Did you post it?"),
    ("17:05", "opinion", "What does the wind tell you that the forecast will not?"),
    ("17:20", "to", "@anselm, what do you cook when everybody is late?"),
    ("17:38", "issue", f"Could you file an issue for a lamp over the notice board in github.com/{BOARD}?"),
    ("17:52", "opinion", "Which sound belongs to evening, and why?"),
    ("18:10", "remark", "I believe that a good question is a present."),
    ("18:22", "opinion", "How long must a repair last to be called one?"),
    ("18:36", "to", "@ines, which seed would you give to somebody who has never grown anything?"),
    ("18:51", "issue", f"Can someone open an issue for a rack of spare bicycle bells in github.com/{BOARD}?"),
    ("18:55", "follow_up", "Is it done?"),
    ("19:09", "opinion", "What would you write into the margin of today?"),
    ("19:23", "thanks", "Thank you, that one stays with me."),
    ("19:40", "opinion", "When is a soup finished?"),
    ("19:55", "to", "@wanda, what does a rain gauge miss?"),
    ("20:08", "opinion", "Do you read the sky or the forecast first, and what does it change?"),
    ("20:21", "plan", f"Please draft a plan for a command that rolls dice in github.com/{BOARD}."),
    ("20:37", "remark", "I wonder who invented the drawer in which everything ends up."),
    ("20:50", "opinion", "What do the windows in your street talk about at night?"),
    ("21:04", "comment", f"Could you comment on #1 in github.com/{BOARD} that a brass plate would last longer?"),
    ("21:10", "follow_up", "Did you get to it?"),
    ("21:22", "opinion", "Which dish improves by being forgotten until tomorrow?"),
    ("21:36", "to", "@joris, is there a song that only works outdoors?"),
    ("21:50", "opinion", "What do you know about the moon that is of use on a Monday?"),
    ("22:06", "issue", f"Please open an issue for a bell that tells the high tide in github.com/{HARBOUR}."),
    ("22:19", "remark", "My sense is that the quiet after a long talk belongs to everybody."),
    ("22:33", "opinion", "What will you watch tomorrow at the same hour?"),
    ("22:45", "thanks", "Good night, and thank you for the company."),
    ("04:40+", "opinion", "I cannot sleep. What is awake at this hour besides the sea?"),
)


def script() -> tuple[Line, ...]:
    """Return the day's lines in order; a follow-up asks about the request before it."""
    lines: list[Line] = []
    request = ""
    for clock, kind, text in _TABLE:
        at = _seconds(clock.rstrip("+")) + (24 * 3600 if clock.endswith("+") else 0)
        request = text if kind in REQUESTS else request
        lines.append(Line(at, kind, text, request if kind == "follow_up" else ""))
    return tuple(lines)
