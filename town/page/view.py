"""Converts the network to the page's JSON: threads by their newest post, and the residents. Only reads."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adapters.atproto.types import Actor, Post, ThreadNode
from adapters.space.wire import parse_json
from common.clock import parse_iso
from town.atproto.index import mentioned_dids
from town.atproto.network import Network

STALE_AFTER = timedelta(minutes=3)
_SHOWN: Mapping[str, type] = {
    "mode": str,
    "startedAt": str,
    "updatedAt": str,
    "loops": list,
    "lastDecision": dict,
    "decisions": list,
    "counts": dict,
    "waits": dict,
    "rituals": list,
    "nextExpressionAt": str,
    "troubles": list,
    "budget": dict,
    "modelBudget": dict,
    "standing": dict,
    "drafts": list,
    "growth": dict,
}
"""The fields of a status file that people may see, with their types; entries of lists are objects."""


@dataclass(frozen=True, slots=True)
class ResidentStatus:
    """A resident as the page shows it; `life` holds the public fields of the status file.

    `getting_up`: its home exists, but its process has not written a status yet. `elsewhere`: it has no home here, and
    whatever runs this account reports no status.
    """

    handle: str
    awake: bool
    life: Mapping[str, Any] = field(default_factory=dict)
    getting_up: bool = False
    elsewhere: bool = False


def read_status(handle: str, path: Path, now: datetime) -> ResidentStatus:
    """Return the status at `now` from the file at `path`. Never raises because of what the file holds."""
    try:
        raw: Any = parse_json(path.read_bytes())
        updated = parse_iso(str(raw["updatedAt"]))
        alive = raw["state"] == "running" and now - updated < STALE_AFTER and _is_running(int(raw["pid"]))
    except FileNotFoundError:
        is_here = path.parent.parent.is_dir()
        return ResidentStatus(handle, awake=False, getting_up=is_here, elsewhere=not is_here)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return ResidentStatus(handle, awake=False)
    life = {key: _entries(raw[key]) for key, kind in _SHOWN.items() if isinstance(raw.get(key), kind)}
    return ResidentStatus(handle, alive, life)


def _entries(value: Any) -> Any:  # noqa: ANN401 - JSON
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else value


def _is_running(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


_POSTS_LOOKED_AT = 200
_THREADS_SHOWN = 60

Json = dict[str, Any]


def feed(network: Network) -> list[Json]:
    """Return the threads, newest activity first, each as its posts in reading order with their depth."""
    threads: list[Json] = []
    shown: set[str] = set()
    for post in network.posts(_POSTS_LOOKED_AT):
        if post.uri in shown or (root := network.thread(post.uri)) is None:
            continue
        thread = _thread(network, root)
        shown.update(each["uri"] for each in thread["posts"])
        threads.append(thread)
        if len(threads) == _THREADS_SHOWN:
            break
    return threads


def people(network: Network, residents: Sequence[ResidentStatus]) -> list[Json]:
    """Return the residents, and what each is doing."""
    return [_person(network, status) for status in residents]


def _thread(network: Network, root: ThreadNode) -> Json:
    posts = [_post(network, node.post, depth) for node, depth in _walk(root)]
    return {"uri": root.post.uri, "posts": posts}


def _walk(root: ThreadNode) -> Iterator[tuple[ThreadNode, int]]:
    """Yield a post, then everything below it, each with its depth, in reading order."""
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(reply, depth + 1) for reply in reversed(node.replies)]


def _post(network: Network, post: Post, depth: int) -> Json:
    return {
        "uri": post.uri,
        "author": _actor(post.author),
        "text": post.text,
        "at": post.created_at,
        "depth": depth,
        "parent": post.reply.parent.uri if post.reply else None,
        "told": _told(network, post),
        "likes": [_actor(actor) for actor in network.likes(post.uri)],
        "pictures": _pictures(network, post),
    }


def _pictures(network: Network, post: Post) -> list[Json]:
    """Return the pictures of a post: the URL on this page, the alt text, and the size in pixels if known."""
    embed = network.index.posts[post.uri].value.get("embed") or {}
    images = embed.get("images") or (embed.get("media") or {}).get("images") or ()
    return [
        {
            "url": f"/pictures/{quote(post.author.did)}/{quote(str(image['image']['ref']['$link']))}",
            "alt": str(image.get("alt", "")),
            **{side: size for side, size in (image.get("aspectRatio") or {}).items() if side in {"width", "height"}},
        }
        for image in images
    ]


def _told(network: Network, post: Post) -> list[str]:
    """Return the handles of the accounts that a post notifies: those it mentions, and the one it answers."""
    parent = network.index.posts.get(post.reply.parent.uri) if post.reply else None
    dids = [*mentioned_dids(network.index.posts[post.uri].value), *([parent.at.did] if parent else [])]
    return [network.actor(did).handle for did in dict.fromkeys(dids) if did != post.author.did and network.find(did)]


def _actor(actor: Actor) -> Json:
    return {"did": actor.did, "handle": actor.handle, "name": actor.display_name or actor.handle}


def _person(network: Network, status: ResidentStatus) -> Json:
    account = network.find(status.handle)
    profile = network.profile(account.did) if account else None
    return {
        **(
            _actor(network.actor(account.did))
            if account
            else {"did": "", "handle": status.handle, "name": status.handle}
        ),
        "bio": str(profile.value.get("description", "")) if profile else "",
        "follows": _follows(network, account.did) if account else [],
        "awake": status.awake,
        "gettingUp": status.getting_up,
        "elsewhere": status.elsewhere,
        "life": status.life,
    }


def _follows(network: Network, did: str) -> list[Json]:
    """Return the accounts that an account follows and that still exist, sorted by name."""
    subjects = {str(record.value.get("subject")) for record in network.records(did, "app.bsky.graph.follow")}
    return sorted(
        (_actor(network.actor(one)) for one in subjects if network.find(one)), key=lambda one: str(one["name"])
    )
