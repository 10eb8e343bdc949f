"""Renders pages of the gallery for people and for programs that look for pictures on a page."""

from __future__ import annotations

from html import escape

from town.gallery.library import GalleryBlock, GalleryChannel, GalleryViews

POLICY = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"


def channel_page(channel: GalleryChannel, views: GalleryViews) -> str:
    """Return the page of a channel: its pictures with their titles, and its other blocks."""
    parts = [f"<li>{_block(block, views)}</li>" for block in channel.blocks]
    body = f"<h1>{escape(channel.title)}</h1><p>by {escape(channel.owner.full_name)}</p><ul>{''.join(parts)}</ul>"
    return _page(channel.title, body)


def block_page(block: GalleryBlock, views: GalleryViews) -> str:
    """Return the page of a block."""
    title = block.title or "Untitled"
    return _page(title, f"<h1>{escape(title)}</h1>{_block(block, views)}")


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
    return _page("Light on surfaces", body, head)


def _block(block: GalleryBlock, views: GalleryViews) -> str:
    words = f"<p>{escape(block.content or block.description)}</p>" if block.content or block.description else ""
    title = escape(block.title)
    if block.picture:
        shown = views.picture_url(block.picture, "display")
        link = f'<a href="/block/{block.id}"><img src="{shown}" alt="{title}"></a>'
        return f"<figure>{link}<figcaption>{title}</figcaption></figure>{words}"
    if block.source:
        return f'<a href="{escape(block.source)}">{title}</a>{words}'
    return f"<h2>{title}</h2>{words}"


def _page(title: str, body: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{head}</head>'
        f"<body>{body}</body></html>"
    )
