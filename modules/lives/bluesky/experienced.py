"""Which experience a handled post leaves: what we said, or what the owner said."""

from __future__ import annotations

from dataclasses import dataclass

from common.importance import Importance
from common.provenance import Trust
from common.text.closings import asks
from modules.lives.bluesky.types import Pending
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import IMPRESSED, ExperienceType, NewExperience, Source
from modules.services.outbox.outbox import Outbox
from modules.services.peers.accounts import Relationships
from modules.services.rituals.store import RitualRuns
from modules.services.work.types import Disposition

_GUIDANCE_CHARS, _CONTACT_CHARS, _QUOTE_CHARS = 10, 20, 30


@dataclass(frozen=True, slots=True)
class PostExperiences:
    """Writes them to `log`."""

    log: ExperienceLog
    relationships: Relationships
    outbox: Outbox
    runs: RitualRuns

    async def note(self, item: Pending, importance: Importance, disposition: Disposition) -> None:
        """Keep what a settled post was to us; a reply that waits for the owner's approval was not given yet."""
        post = item.notification
        if importance == "owner":
            if len(post.text) > _GUIDANCE_CHARS:
                await self.log.record(NewExperience("owner_guidance", "bluesky", post.uri, post.text, trust="owner"))
            return
        kind = self._type_of(item, disposition)
        if kind is None or disposition.held:
            return
        intent = await self.outbox.get(disposition.intent_id) if disposition.intent_id else None
        said = disposition.reason if kind == "chose_silence" else intent.body.public_text if intent else ""
        source: Source = "ritual" if await self.runs.of_thread(post.root.uri) else "bluesky"
        trust: Trust = "stranger" if importance == "stranger" else "peer"
        author = post.author
        await self.log.record(
            NewExperience(kind, source, post.uri, said, author.did, f"@{author.handle}", post.uri, trust)
        )

    def _type_of(self, item: Pending, disposition: Disposition) -> ExperienceType | None:
        post = item.notification
        if disposition.act == "left" or (disposition.act == "silent" and not disposition.intent_id):
            # NOTE(self): what a rule kept back was no choice.
            return "chose_silence"
        if disposition.act != "replied":
            return None
        if kind := IMPRESSED.get(disposition.impression):
            return kind
        known = self.relationships.get(post.author.did)
        if len(post.text) > _CONTACT_CHARS and (known is None or known.times_written <= 1):
            return "connection_formed"
        if post.kind == "quote" and len(post.text) > _QUOTE_CHARS:
            return "idea_resonated"
        return "helped_someone" if asks(post.text) else "saw_perspective"
