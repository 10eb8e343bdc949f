"""What each model taught us about its service: what it refuses by name, and whether it can see.

Kept in memory only: after a restart each lesson costs one refused request again, and that is free.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal, TypeAlias

from modules.runtime.llm.budget_guard import Request
from modules.runtime.llm.dialect import has_pictures, sees_within_bounds, without_pictures, worded_for
from modules.runtime.llm.policy import CallVerdict, adapt_request, refuses_one_picture, refuses_pictures

Vision: TypeAlias = Literal["on", "off", "auto"]
"""Whether pictures are sent: always, never, or until a model refuses them."""


class ServiceQuirks:
    """Words each request as its model and its service take it.

    Args:
        base_url: the service.
        vision: `auto` remembers that a model cannot see; with `on` it is shown the next picture all the same.

    """

    def __init__(self, *, base_url: str, vision: Vision = "auto") -> None:
        self._base_url = base_url
        self._vision = vision
        self._learned: dict[str, list[CallVerdict]] = defaultdict(list)
        self._blind: set[str] = set()

    def sees(self, model: str) -> bool:
        """Whether it is worth showing pictures to this model."""
        return self._vision != "off" and model not in self._blind and sees_within_bounds(model)

    def apply(self, request: Request) -> Request:
        """The request without what its model is known not to take."""
        model = str(request["model"])
        worded = worded_for(request, self._base_url)
        if not self.sees(model):
            worded = without_pictures(worded)
        for verdict in self._learned[model]:
            worded = adapt_request(worded, verdict) or worded
        return worded

    def learn(self, request: Request, sent: Request, verdict: CallVerdict) -> Request | None:
        """What to go on with, after `sent` was refused, in place of `request`; None if there is nothing to change."""
        model = str(sent["model"])
        if adapt_request(sent, verdict) is not None:
            self._learned[model].append(verdict)
            return request
        if not has_pictures(sent) or not refuses_pictures(verdict):
            return None
        if self._vision == "auto" and not refuses_one_picture(verdict):
            self._blind.add(model)
        return without_pictures(request)
