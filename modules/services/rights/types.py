"""What a person declared about the use of their posts by AI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Choice = Literal["allow", "deny", "unset"]


@dataclass(frozen=True, slots=True)
class Preference:
    """A person's choices, as they hold for us.

    The SOUL trains no model and makes no embeddings, so `training` and `embedding` decide nothing here; they are kept
    because `soul know` shows the owner all that a person declared.

    Attributes:
        training: models may be trained on their posts.
        inference: their posts may stand in a prompt.
        synthetic_content: a model may write from their posts, for example a reply.
        embedding: embeddings may be made of their posts.

    """

    training: Choice = "unset"
    inference: Choice = "unset"
    synthetic_content: Choice = "unset"
    embedding: Choice = "unset"
