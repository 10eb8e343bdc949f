"""Lets the model choose one act about one post: the prompt, the post's pictures, the model and its tools."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.atproto.client import PublicRepos
from adapters.atproto.convert import MOST_PICTURES
from adapters.atproto.types import Notification, Picture, Post
from adapters.web.client import WebClient
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering
from common.session_keys import THREAD_PREFIX
from common.text.untrusted import clean
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.reply_check import Scaffold, scaffold_of
from modules.lives.bluesky.types import Pending
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Image, Message, Text
from modules.services.agent.media import Media
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import OwnerRequest, Turn
from modules.services.agent.turn.runner import TurnRunner, chosen_in
from modules.services.identity.identity import Me
from modules.services.pictures.choosing import ChosenPicture, PictureChooser
from modules.services.rituals.rituals import CONTEXT_SKILL
from modules.services.sessions.sessions import Sessions
from modules.services.skills.skills import Framer, Skills, written
from modules.services.work.types import Disposition

_MAX_BYTES = 2 * 1024 * 1024
_DEADLINE_S = 20.0
_ALT_CHARS = 1000
_KINDS = ("image/*",)
_PICTURES_SKILL = "bluesky-pictures"


@dataclass(slots=True, kw_only=True)
class PostPictures:
    """Fetches the pictures of a post.

    Attributes:
        web: the web client.
        repos: returns the address of a file of which only the record is known.
        media: redraws pictures, and stores them.
        skills: has the texts.
        rng: draws the boundary of untrusted text.
        journal: records what could not be loaded.
        sees: returns whether the model sees pictures; if not, nothing is fetched.
        home_url: the service, if it is on this machine: the only place from which a picture may come without TLS.
        deadline_s: seconds for fetching one picture.

    """

    web: WebClient
    repos: PublicRepos
    media: Media
    skills: Skills
    rng: random.Random
    journal: Journal
    sees: Callable[[], bool]
    home_url: str = ""
    deadline_s: float = _DEADLINE_S

    async def gather(self, post: Post | Notification, session_key: str) -> tuple[Text | Image, ...]:
        """Return the parts that follow the text of the message about a post: its pictures in order, at most four."""
        framer = Framer(self.skills, self.rng)
        wanted = post.pictures[:MOST_PICTURES]
        described = [self._described(post, picture, framer) for picture in wanted]
        if not self.sees():
            return tuple(Text(self._words("Picture", words)) for words in described)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._get(post, picture, session_key)) for picture in wanted]
        return tuple(
            [await self._met(post, task.result(), words) for task, words in zip(tasks, described, strict=True)]
        )

    async def _met(self, post: Post | Notification, got: ApiResult[tuple[str, str]], described: str) -> Text | Image:
        if isinstance(got, Ok):
            key, mime = got.data
            return Image(key, mime, self._words("Picture", described))
        await self.journal.record(
            Entry(
                "error",
                "awareness",
                f"A picture of @{post.author.handle} could not be loaded",
                line=None,
                reason=got.error,
                trigger_uri=post.uri,
                author=post.author.handle,
            )
        )
        return Text(self._words("Not Loaded", described))

    def _words(self, section: str, described: str) -> str:
        return self.skills.render(_PICTURES_SKILL, section, description=described).strip()

    def _described(self, post: Post | Notification, picture: Picture, framer: Framer) -> str:
        """Return the author's description of a picture, framed; "" if there is no readable one."""
        said = clean(picture.alt)[:_ALT_CHARS]
        return framer.frame("reading", author=f"@{post.author.handle}", uri=post.uri, text=said) if said else ""

    @answering
    async def _get(self, post: Post | Notification, picture: Picture, session_key: str) -> ApiResult[tuple[str, str]]:
        """Fetch a picture and store it; return its key and its media type."""
        place = picture.url or (await self.repos.file_url(post.author.did, picture.cid)).or_raise()
        at_home = bool(self.home_url) and place.startswith(f"{self.home_url}/")
        if not at_home and not place.startswith("https://"):
            return Err("its place is not https", kind="invalid")
        fetched = (
            await self.web.fetch(place, kinds=_KINDS, max_bytes=_MAX_BYTES, deadline_s=self.deadline_s, named=at_home)
        ).or_raise()
        drawn = (await self.media.picture(fetched.body)).or_raise()
        kept = await self.media.keep(drawn.data, mime=drawn.mime, session_key=session_key)
        return Ok((kept.or_raise(), drawn.mime))


_REQUEST = "data_request"
RESPONSE_TOOLS = ("bluesky_reply", "bluesky_like", "graceful_exit", "stay_silent", _REQUEST)
_REPLY_WITH_PICTURE = "bluesky_reply_picture"
OWNER_TOOLS = (
    *("bluesky_post", "withdraw_act", "bluesky_limit_replies", "bluesky_delete_post", "bluesky_repost"),
    *("bluesky_follow", "bluesky_unfollow", "mute_account"),
    *("workspace_create", "plan_create", "create_memo", "github_create_issue", "github_comment"),
)
"""The tools for what the owner asks for in a public post. They tell only what they made, or found in its place."""
_SKILL = "bluesky-response"
_TEMPLATE = "User Message Template"
_OWN_SECTIONS = ("System Prompt", _TEMPLATE, "Relationship", "Notes", "No Conversation")


@dataclass(slots=True, kw_only=True)
class PostResponder:
    """Lets the model choose what to do about a case."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    clock: Clock
    rng: random.Random
    sessions: Sessions
    pictures: PostPictures
    chooser: PictureChooser
    journal: Journal

    async def respond_to(self, post_case: PostCase, *, offers_request: bool) -> Disposition:
        """Return what the model chose; its reason is "" if the model gave none.

        If the turn has only the owner's words, the model may act. If others wrote beside the post, a page is shown or a
        picture may be, a separate turn, which has these and no acts, gives an answer in words alone. Without
        `offers_request`, the model can no longer find that the author asks about their own data.

        Raises:
            BudgetExceeded: there is no budget for the author of the post.
            Transient: the model is briefly unable.

        """
        has_more = bool(post_case.hidden) or post_case.shows_page
        if post_case.may_act and (has_more or post_case.may_show_picture):
            chosen = await self._respond(post_case, None, answers=False, offers_request=offers_request)
            if chosen.act != "unheard":
                return chosen
        whole = post_case.heard_whole if has_more else post_case
        offered = await self._offered(whole)
        shown = whole.heard_whole if offered else whole
        return await self._respond(shown, offered, answers=True, offers_request=offers_request)

    async def _respond(
        self, post_case: PostCase, offered: ChosenPicture | None, *, answers: bool, offers_request: bool
    ) -> Disposition:
        """Run one turn. Without `answers`, a reply in words alone becomes `unheard`: another turn gives it."""
        notification = post_case.notification
        key = f"{THREAD_PREFIX}{notification.root.uri}"
        pictures = await self.pictures.gather(post_case.thread.focal_path[-1], key)
        facts = replace(
            post_case.facts,
            pictures=sum(isinstance(part, Image) for part in pictures),
            offered=offered.title if offered else "",
        )
        words, subject = self._words(post_case, offered), post_case.subject
        said = (*subject.said, *offered.said) if offered else subject.said
        turn = Turn(
            loop="awareness",
            provenance=post_case.provenance,
            cause_id=notification.uri,
            subject=replace(subject, scaffold=words.scaffold, picture=offered, said=said, is_among_others=not answers),
            importance=post_case.importance,
            request=_request_in(post_case.item) if post_case.may_act else None,
            made=set() if post_case.may_act else None,
        )
        post, told = (_message(text, pictures) for text in (post_case.post_line, words.told))
        session_id = await self.sessions.add_once(key, post, turn.provenance, did=notification.author.did)
        more = (_REPLY_WITH_PICTURE,) if offered else OWNER_TOOLS if post_case.may_act else ()
        only = tuple(name for name in (*more, *RESPONSE_TOOLS) if offers_request or name != _REQUEST)
        system = await self.prompter.prompt(
            skill=_SKILL,
            variables={
                "bluesky_username": self.me.bluesky_username,
                "owner_handle": self.me.owner_handle,
                "github_username": self.me.github_username,
                "tools": self.turn_runner.offered(turn, only),
            },
            audience="bluesky",
            session_key=key,
            query=notification.text,
            now=self.clock.now(),
            least=turn.provenance,
            peers=post_case.present_peers,
            person=notification.author.did,
            thread=notification.root.uri,
        )
        turn_result = await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=(told,),
            purpose=_SKILL,
            session_id=session_id,
            tool_choice="required",
            only=only,
            about=facts,
        )
        return chosen_in(turn_result, "answer")

    async def _offered(self, post_case: PostCase) -> ChosenPicture | None:
        """Return the picture that the reply may show, if the post is about design; None if none can be loaded."""
        source = self.chooser.pick_source(owners=True) if post_case.may_show_picture else None
        if source is None:
            return None
        post = post_case.notification
        chosen = await self.chooser.choose(source, why="talk of design")
        if isinstance(chosen, Ok):
            return chosen.data
        summary, reason = f"No picture for @{post.author.handle}", f"{source.name}: {chosen.error}"
        await self.journal.record(Entry("life", "awareness", summary, line=None, reason=reason, trigger_uri=post.uri))
        return None

    def _words(self, post_case: PostCase, offered: ChosenPicture | None) -> _Words:
        """Return a case in words: the message for the model, and the words that only our prompt has."""
        post = post_case.notification
        framer = Framer(self.skills, self.rng)
        marks = self.skills.subsections(_SKILL, "Marks") | {"Not Sent": self.skills.section("memory", "Not Sent")}
        said = {"picture": offered.framed(framer)} if offered else {}
        said["post"] = framer.frame("post", author=post_case.author_name, uri=post.uri, text=post_case.text)
        if hosts := post_case.link_hosts:
            said["post"] += "\n" + framer.frame("links", author="several", uri=post.uri, text=hosts)
        said["earlier"] = "\n".join(
            framer.frame("post", author=post_case.author_name, uri=uri, text=text)
            for uri, text in post_case.earlier_texts.items()
        )
        if quoted := post_case.quoted:
            author = "YOU" if quoted.author.did == post_case.own_did else f"@{quoted.author.handle}"
            said["post"] += "\n" + framer.frame("quoted", author=author, uri=quoted.uri, text=post_case.quoted_text)
        if attached := post_case.attached:
            said["post"] += "\n" + framer.frame("attached", author=post_case.author_name, uri=post.uri, text=attached)
        if earlier := post_case.thread_lines(self.clock.now(), marks):
            said["conversation"] = framer.frame("conversation", author="several", uri=post.root.uri, text=earlier)
        figures = post_case.figures
        about = {
            "relationship": self.skills.render(_SKILL, "Relationship", post_case.acquaintance, **figures),
            "notes": "\n".join(self.skills.render(_SKILL, "Notes", name, **figures) for name in post_case.notes),
            "reason": post.kind,
            "author": post.author.handle,
            "written": written(self.skills, post_case.incoming.at, self.clock.now(), self.me.timezone),
            "ritual": post_case.ritual.context if post_case.ritual else "",
        }
        if offered:
            said["picture"] = self.skills.render("shared-picture", "For a Reply", picture=said["picture"]).strip()
        theirs = {"conversation": self.skills.section(_SKILL, "No Conversation"), "picture": "", **said}
        message = self.skills.render(_SKILL, _TEMPLATE, **about, **theirs)
        # NOTE(self): the context of a ritual has what we said in earlier runs, which may be repeated.
        bare = self.skills.render(_SKILL, _TEMPLATE, **(about | dict.fromkeys((*theirs, "ritual"), "")))
        templates = [self.skills.section(_SKILL, name) for name in _OWN_SECTIONS]
        others = [("core", "Ground Rules"), ("shared-picture", "For a Reply")]
        others += [(CONTEXT_SKILL, name) for name in ("Ritual Thread Context", "Parts")]
        templates += [self.skills.section(*one) for one in others]
        told = [about["relationship"], about["notes"], bare]
        return _Words(message, scaffold_of(templates, told))


@dataclass(frozen=True, slots=True)
class _Words:
    """A case in words: `told` for the model, and the words that only our prompt has."""

    told: str
    scaffold: Scaffold


def _request_in(item: Pending) -> OwnerRequest:
    """Return the owner's words in a post and in their older ones that wait with it."""
    posts = (*item.earlier, item.notification)
    return OwnerRequest("\n\n".join(one.text for one in posts), tuple(pair for one in posts for pair in one.mentions))


def _message(text: str, pictures: tuple[Text | Image, ...]) -> Message:
    return Message("user", (Text(text), *pictures) if pictures else text)
