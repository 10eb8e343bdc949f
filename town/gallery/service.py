"""The gallery over HTTP: the API of Are.na under `/v2`, pages for people, pictures, and faults under `/town/faults`."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Literal, TypeAlias, TypeVar, get_args

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from common.clock import Clock
from town import faults
from town.gallery.library import (
    BLOCKS,
    BY_SLUG,
    NAMES,
    SIZES,
    GalleryBlock,
    GalleryChannel,
    GalleryViews,
    Json,
    blocks_about,
    channels_about,
    media_type,
    picture,
)
from town.serving import drop, until_gone

FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "hang",  # answer only after `seconds`
    "cut",  # drop the connection instead of answering
]
Fault: TypeAlias = faults.Fault[FaultKind]

_PER, _MOST_PER = 25, 100
_DAY_S = 86_400

T = TypeVar("T")


class GalleryFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the gallery."""

    kinds = get_args(FaultKind)


def gallery_app(clock: Clock, *, armed: GalleryFaults | None = None) -> Starlette:
    """Return the application; serve it on loopback with `town.serving.serve`.

    The API is under `/v2`, as at Are.na's own address. Faults can be armed, in process or by
    `POST /town/faults`, only if `armed` is given; a request meets one by its method and path.
    """
    service = _GalleryService(clock, armed if armed is not None else GalleryFaults())
    looks: dict[str, Callable[[Request], Response]] = {
        "/v2/search": _search,
        "/v2/search/channels": _search_channels,
        "/v2/search/blocks": _search_blocks,
        "/v2/channels/{slug}": _channel,
        "/v2/channels/{slug}/contents": _contents,
        "/v2/blocks/{block_id:int}": _block,
        "/pictures/{size}/{name}": _picture,
        "/exhibition": _exhibition,
        "/block/{block_id:int}": _block_page,
        "/{owner}/{slug}": _channel_page,
    }
    routes = [Route("/town/faults", armed.answer, methods=["GET", "POST", "DELETE"])] if armed is not None else []
    routes += [Route(path, service.answering(look)) for path, look in looks.items()]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refused})


class _GalleryService:
    def __init__(self, clock: Clock, armed: GalleryFaults) -> None:
        self._clock = clock
        self._faults = armed

    def answering(self, look: Callable[[Request], Response]) -> Callable[[Request], object]:
        """Return the endpoint of one route."""

        async def endpoint(request: Request) -> Response:
            fault = self._faults.meet(f"{request.method} {request.url.path}")
            if fault is None:
                return look(request)
            match fault.kind:
                case "rate_limited":
                    raise HTTPException(429, "Too Many Requests", {"retry-after": f"{fault.seconds:.0f}"})
                case "server_error":
                    raise HTTPException(500, "Internal Server Error")
                case "bad_gateway":
                    return faults.bad_gateway()
                case "cut":
                    return drop(request)
            await until_gone(request, self._clock.sleep(fault.seconds))
            return look(request)

        return endpoint


def _search(request: Request) -> Response:
    words, views = request.query_params.get("q", ""), _views(request)
    channels, channel_count = _page(request, channels_about(words))
    blocks, block_count = _page(request, blocks_about(words))
    found = {"channels": [views.channel(each) for each in channels], "blocks": [views.block(each) for each in blocks]}
    return JSONResponse({"term": words, **found, **_standing(request, max(channel_count, block_count))})


def _search_channels(request: Request) -> Response:
    words, views = request.query_params.get("q", ""), _views(request)
    found, count = _page(request, channels_about(words))
    return JSONResponse(
        {"term": words, "channels": [views.channel(channel) for channel in found], **_standing(request, count)}
    )


def _search_blocks(request: Request) -> Response:
    words, views = request.query_params.get("q", ""), _views(request)
    found, count = _page(request, blocks_about(words))
    return JSONResponse({"term": words, "blocks": [views.block(block) for block in found], **_standing(request, count)})


def _channel(request: Request) -> Response:
    channel, views = _channel_of(request), _views(request)
    found, count = _page(request, channel.blocks)
    contents = [views.connected(channel, block) for block in found]
    return JSONResponse({**views.channel(channel), "contents": contents, **_standing(request, count)})


def _contents(request: Request) -> Response:
    """Return the blocks of a channel without the channel itself."""
    channel, views = _channel_of(request), _views(request)
    found, _ = _page(request, channel.blocks)
    return JSONResponse({"contents": [views.connected(channel, block) for block in found]})


def _block(request: Request) -> Response:
    return JSONResponse(_views(request).block(_block_of(request)))


def _picture(request: Request) -> Response:
    name, size = request.path_params["name"], request.path_params["size"]
    if name not in NAMES or size not in SIZES:
        raise HTTPException(404)
    return Response(
        picture(name, size), media_type=media_type(name), headers={"cache-control": f"public, max-age={_DAY_S}"}
    )


def _exhibition(request: Request) -> Response:
    return _html(exhibition_page(_views(request)))


def _channel_page(request: Request) -> Response:
    channel = _channel_of(request)
    if channel.owner.slug != request.path_params["owner"]:
        raise HTTPException(404)
    return _html(channel_page(channel, _views(request)))


def _block_page(request: Request) -> Response:
    return _html(block_page(_block_of(request), _views(request)))


def _html(page: str) -> Response:
    return HTMLResponse(page, headers={"content-security-policy": POLICY})


def _views(request: Request) -> GalleryViews:
    return GalleryViews(f"{request.url.scheme}://{request.url.netloc}")


def _channel_of(request: Request) -> GalleryChannel:
    channel = BY_SLUG.get(request.path_params["slug"])
    if channel is None:
        raise HTTPException(404)
    return channel


def _block_of(request: Request) -> GalleryBlock:
    block = BLOCKS.get(request.path_params["block_id"])
    if block is None:
        raise HTTPException(404)
    return block


def _window(request: Request) -> tuple[int, int]:
    """Return which page is requested, and its size: at most 100."""
    page, per = (request.query_params.get(name, "") for name in ("page", "per"))
    return max(1, int(page) if page.isdigit() else 1), min(_MOST_PER, max(1, int(per) if per.isdigit() else _PER))


def _page(request: Request, found: Sequence[T]) -> tuple[Sequence[T], int]:
    """Return the requested page of what was found, and the total number."""
    page, per = _window(request)
    return found[(page - 1) * per : page * per], len(found)


def _standing(request: Request, count: int) -> Json:
    page, per = _window(request)
    return {"current_page": page, "per": per, "length": count, "total_pages": -(-count // per), "authenticated": False}


async def _refused(_: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, HTTPException) else HTTPException(500)
    body = {"code": refusal.status_code, "message": refusal.detail, "description": "The gallery of the town."}
    return JSONResponse(body, refusal.status_code, headers=refusal.headers)


POLICY = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"


def channel_page(channel: GalleryChannel, views: GalleryViews) -> str:
    """Return the page of a channel: its pictures with their titles, and its other blocks."""
    parts = [f"<li>{_block_html(block, views)}</li>" for block in channel.blocks]
    body = f"<h1>{escape(channel.title)}</h1><p>by {escape(channel.owner.full_name)}</p><ul>{''.join(parts)}</ul>"
    return _page_html(channel.title, body)


def block_page(block: GalleryBlock, views: GalleryViews) -> str:
    """Return the page of a block."""
    title = block.title or "Untitled"
    return _page_html(title, f"<h1>{escape(title)}</h1>{_block_html(block, views)}")


def exhibition_page(views: GalleryViews) -> str:
    """Return a page with pictures in every form of HTML, and some images that are none: a pixel, a logo, a drawing."""
    url = views.picture_url
    head = (
        f'<meta property="og:image" content="{url("lighthouse.jpg", "original")}">'
        f"<style>.wall {{ background-image: url('{url('threads.png', 'large')}'); min-height: 12em }}</style>"
    )
    body = (
        "<h1>Light on surfaces</h1><p>Six works from two collections.</p>"
        '<figure><img src="/pictures/thumb/tide-table.png" width="200" height="133" alt="Bars of a tide table" '
        'srcset="/pictures/thumb/tide-table.png 200w, /pictures/original/tide-table.png 1200w">'
        "<figcaption>Two days of tide, half an hour a bar</figcaption></figure>"
        '<picture><source srcset="/pictures/large/wet-slates.png 1000w, /pictures/original/wet-slates.png 1400w">'
        '<img src="/pictures/display/wet-slates.png" alt="Wet slates"></picture>'
        '<p><img src="/pictures/original/painted-signs.png" width="900" height="900" alt=""> Painted signs, artist '
        "unknown</p>"
        '<div class="wall"></div>'
        '<img src="/pictures/square/lit-window.png" width="180" height="180" alt="A small window">'
        '<img src="/pixel.png" width="1" height="1" alt=""><img src="/logo-small.png" width="64" alt="The gallery">'
        '<img src="/mark.svg" width="500" alt="A mark">'
    )
    return _page_html("Light on surfaces", body, head)


def _block_html(block: GalleryBlock, views: GalleryViews) -> str:
    words = f"<p>{escape(block.content or block.description)}</p>" if block.content or block.description else ""
    title = escape(block.title)
    if block.picture:
        shown = views.picture_url(block.picture, "display")
        link = f'<a href="/block/{block.id}"><img src="{shown}" alt="{title}"></a>'
        return f"<figure>{link}<figcaption>{title}</figcaption></figure>{words}"
    if block.source:
        return f'<a href="{escape(block.source)}">{title}</a>{words}'
    return f"<h2>{title}</h2>{words}"


def _page_html(title: str, body: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{head}</head>'
        f"<body>{body}</body></html>"
    )
