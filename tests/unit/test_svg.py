"""Known tricks in an SVG, and what is left of them."""

from time import process_time
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.refusals import InvalidInput
from resolvers.voting.svg import LARGEST, LARGEST_RESULT, MOST_DRAWN, inline_styles, parse_picture, sanitize
from tests.pictures import MARK, ORDINARY, SVG, TRICKS


@pytest.mark.parametrize(
    "drawn",
    [
        '<filter id="f"><feGaussianBlur stdDeviation="99999"/></filter>',
        '<filter id="f"><feGaussianBlur stdDeviation="3 1e3"/></filter>',
        '<filter id="f"><feTurbulence numOctaves="99999999"/></filter>',
        '<filter id="f"><feMorphology radius="-500"/></filter>',
        '<filter id="f" width="1000000000"/>',
        '<rect x="1e9" width="1" height="1"/>',
        '<path d="M0,0 L1e400,3"/>',
        '<g transform="scale(99999999)"/>',
        '<g style="filter: blur(9999px)"/>',
        '<g style="fill:url(#f);transform:scale(99999999)"/>',
        "<style>rect{stroke-width:1e9}</style>",
        '<g filter="drop-shadow(0 0 9999px red)"/>',
    ],
)
def test_a_number_that_keeps_a_browser_busy_is_refused(drawn: str) -> None:
    """In filters, in shapes and in styles; with the attribute's name."""
    with pytest.raises(InvalidInput, match="has a number that is too large"):
        sanitize(f'<svg>{drawn}<rect width="1" height="1"/></svg>')


def test_ordinary_numbers_and_colours_are_accepted() -> None:
    """A colour is no number, and an id may be a long one."""
    drawn = (
        '<filter id="f99999999"><feGaussianBlur stdDeviation="20"/><feTurbulence numOctaves="4"/></filter>'
        '<rect fill="#99999999" filter="url(#f99999999)" '
        'style="filter:blur(5px);stroke:#99999999;fill:url(#f99999999)" width="9000" height="1"/>'
    )
    assert 'fill="#99999999"' in sanitize(f"<svg>{drawn}</svg>")


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
    "<style",
    "position",
    "class",
    "animat",
    "<set",
    "transition",
    "image(",
    "src",
    "element(",
    "var(",
    "attr(",
    "base",
    "<a",
    "vw",
    "view ",
    "discard",
    "onfocus",
    "on:",
    "--",
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


def _bomb_of_uses() -> str:
    groups = (f'<g id="g{n}"><use href="#g{n + 1}"/><use href="#g{n + 1}"/></g>' for n in range(20))
    return "".join(groups) + '<path id="g20"/><use href="#g0"/>'


def _bomb_of_patterns() -> str:
    fill = '<rect fill="url(#p%d)"/>'
    patterns = (f'<pattern id="p{n}">{fill % (n + 1) * 2}</pattern>' for n in range(20))
    return "".join(patterns) + fill % 0


@pytest.mark.parametrize(
    "bomb",
    [
        _bomb_of_uses(),
        '<g id="g">' + "<path/>" * 1_000 + "</g>" + '<use href="#g"/>' * 1_000,
        _bomb_of_patterns(),
        '<marker id="m">' + "<path/>" * 500 + '</marker><path d="M0 0' + "L1 1" * 1_000 + '" marker-mid="url(#m)"/>',
        '<marker id="m">' + "<path/>" * 500 + '</marker><path d="M0 0' + "L1 1" * 1_000 + '" style="marker:url(#m)"/>',
        '<style>path{marker:url(#m)}</style><marker id="m">' + "<g/>" * 500 + '</marker><path d="' + "1 " * 200 + '"/>',
        _bomb_of_uses() + "".join(f'<g id="g{n}"/>' for n in range(21)),
        _bomb_of_uses().replace('href="#g', 'href="#%67'),
        _bomb_of_patterns().replace("url", "URL"),
        '<g id="g"><use href="#g"/></g>',
        '<mask id="m"><rect mask="url(#m)"/></mask>',
    ],
    ids=["use", "many uses", "pattern", "marker", "marker by style", "marker by rule", "ids that come again",
         "percent-encoded ids", "capital letters", "itself", "its own mask"],
)  # fmt: skip
def test_a_picture_that_draws_millions_of_elements_is_refused(bomb: str) -> None:
    """However few bytes it has, and by whatever refers to something else."""
    with pytest.raises(InvalidInput, match=f"at most {MOST_DRAWN}"):
        sanitize(SVG % bomb)


@pytest.mark.parametrize("drawn_once", ["fill", "clip-path", "mask", "filter"])
def test_what_a_path_refers_to_is_drawn_once_however_many_points_it_has(drawn_once: str) -> None:
    """But a marker at each of its points."""
    defined = '<pattern id="p">' + "<path/>" * 2_000 + "</pattern>"
    path = '<path d="M0 0' + "L1 1" * 100 + '" %s="url(#p)"/>'
    assert "<pattern" in sanitize(SVG % (defined + path % drawn_once * 20))
    with pytest.raises(InvalidInput, match=f"at most {MOST_DRAWN}"):
        sanitize(SVG % (defined + path % drawn_once * 26))
    with pytest.raises(InvalidInput, match=f"at most {MOST_DRAWN}"):
        sanitize(SVG % (defined.replace("pattern", "marker") + path % "marker-mid"))


@pytest.mark.parametrize(
    ("sheet", "element", "style"),
    [
        (".a{fill:red}", '<rect class="a"/>', "fill:red"),
        (".a,.b{fill:red;stroke:#000}", '<rect class="c b"/>', "fill:red;stroke:#000"),
        ("#x{fill:red}rect{fill:blue}", '<rect id="x"/>', "fill:red"),
        (".a{fill:red}", '<rect class="a" style="fill:blue"/>', "fill:blue"),
        (".a{fill:red}/* } */.a{fill:green}", '<rect class="a"/>', "fill:green"),
        (".a{fill:url(#g);position:fixed}", '<rect class="a"/>', "fill:url(#g)"),
        ("@font-face{font-family:x}.a{fill:red}", '<rect class="a"/>', "fill:red"),
    ],
)
def test_rules_of_a_style_sheet_move_to_the_elements(sheet: str, element: str, style: str) -> None:
    """A style sheet would apply to the page around the picture; drawing programs write simple ones."""
    left = sanitize(SVG % f"<style>{sheet}</style>{element}")
    assert f'style="{style}"' in left
    assert "<style" not in left


_NAMES = st.sampled_from(["g", "rect", ".a", ".b", ".c", "#x", "#y", "g g", "path"])
_DECLARATIONS = st.sampled_from(["fill:red", "fill:blue", "stroke:#000", "font:1px a", "font-size:2px", "z-index:9"])
_RULES = st.tuples(st.lists(_NAMES, min_size=1, max_size=3), st.lists(_DECLARATIONS, min_size=1, max_size=3))
_ELEMENTS = st.tuples(
    st.sampled_from(["g", "rect"]),
    st.lists(st.sampled_from("abc"), max_size=3),
    st.sampled_from(["", "x", "y"]),
    st.lists(_DECLARATIONS, max_size=2),
)


@given(rules=st.lists(_RULES, max_size=8), elements=st.lists(_ELEMENTS, min_size=1, max_size=5))
def test_an_element_gets_what_a_walk_through_all_rules_finds(rules: list[Any], elements: list[Any]) -> None:
    """Names of elements first, then classes, then ids; each in the order of the sheet, and its own style last."""
    root = ET.Element("svg")
    expected = [""]
    for tag, classes, id_, own in elements:
        ET.SubElement(root, tag, {"class": " ".join(classes), "id": id_, "style": ";".join(own)})
        selectors = [{tag}, {f".{name}" for name in classes}, {f"#{id_}"}]
        said = [body for kind in selectors for names, body in rules for name in names if name in kind]
        found = dict(declaration.split(":") for body in [*said, own] for declaration in body if declaration[0] != "z")
        expected.append(";".join(f"{name}:{value}" for name, value in found.items()))
    inline_styles(root, [f"{','.join(names)}{{{';'.join(body)}}}" for names, body in rules], LARGEST_RESULT)
    assert [element.get("style", "") for element in root.iter()] == expected


@pytest.mark.parametrize(
    "content",
    [
        "<style>g{font-family:" + "a" * 20_000 + "}</style>" + "<g/>" * 1_000,
        "<style>" + "g," * 10_000 + "g{fill:red}</style>" + "<g/>" * 6_000,
        "<style>" + "g{fill:red}" * 2_000 + "</style>" + "<g/>" * 6_000,
        "<style>g{font-family:" + "日" * 3_000 + "}</style>" + "<g/>" * 100,
        ("<g>" * 55 + "</g>" * 55) * 120,
    ],
    ids=["a long value", "many selectors", "many rules", "letters of many bytes", "indentation"],
)
def test_a_picture_that_becomes_too_large_is_refused(content: str) -> None:
    """It would not fit into an item of the table; rules are not applied beyond what fits."""
    with pytest.raises(InvalidInput, match=f"more than {LARGEST_RESULT // 1024} KB") as refused:
        parse_picture(SVG % (MARK + content))
    assert refused.value.path == ("input", "svg")


@pytest.mark.parametrize(
    "attributes",
    ['style="transform:scale(99)"', 'transform="scale(99)"', 'overflow="visible"', 'filter="drop-shadow(9px 9px)"',
     'width="100vw" height="100vh"', 'width="9999999"', 'style="position:fixed;inset:0;overflow:visible"'],
)  # fmt: skip
def test_the_root_stays_within_its_own_box(attributes: str) -> None:
    """A page that inlines the picture decides where it is and how large."""
    left = sanitize(f'<svg {attributes} viewBox="0 0 9 9">{MARK}</svg>')
    assert left.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">')


def test_the_size_of_a_picture_is_kept() -> None:
    """In units that do not depend on the page's window."""
    assert 'height="2.5cm" width="300"' in sanitize('<svg width="300" height="2.5cm"/>')


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


@pytest.mark.parametrize("drawing", [*ORDINARY.values(), SVG % MARK, SVG % "<text>x</text>"])
def test_a_drawing_is_visible(drawing: str) -> None:
    """Shapes and text, also those that are drawn by a reference."""
    assert parse_picture(drawing) == sanitize(drawing)


@pytest.mark.parametrize(
    ("defined", "reference"), [("<path id='a'/><g id='a'/>", "#a"), ("<path id='a b'/>", "#a%20b")]
)
def test_a_reference_draws_what_browsers_find(defined: str, reference: str) -> None:
    """The first of equal ids, and one that the reference writes with escapes."""
    assert "<use" in parse_picture(SVG % f"<defs>{defined}</defs><use href='{reference}'/>")


@pytest.mark.parametrize("length", [10, 100, 150])
def test_a_long_chain_of_references_is_followed(length: int) -> None:
    """Where each stands before what uses it, so that none of them is deep."""
    links = "".join(f"<g id='u{n}'><g><g><use href='#u{n + 1}'/></g></g></g>" for n in reversed(range(length)))
    picture = SVG % f"<defs><path id='u{length}'/>{links}</defs><use href='#u0'/>"
    assert parse_picture(picture) == sanitize(picture)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it draws nothing"),
        ("<g/><defs><path d='M0 0h9'/></defs>", "it draws nothing"),
        ("<text> </text>", "it draws nothing"),
        ("<use/>", "it draws nothing"),
        ("<symbol id='a'><path/></symbol>", "it draws nothing"),
        ("<use href='https://other.example/icons.svg#a'/>", "it draws nothing"),
        ("<linearGradient id='a'><stop/></linearGradient><use href='#a'/>", "it draws nothing"),
        ("<image href='data:image/png;base64,AAAA'/>", "<image> is removed"),
        ("<script>1</script><foreignObject><b/></foreignObject>", "<b>, <foreignObject>, <script> are removed"),
    ],
)
def test_a_picture_of_which_nothing_is_left_is_refused(content: str, reason: str) -> None:
    """With what was removed, instead of being stored and never seen."""
    with pytest.raises(InvalidInput, match=reason) as refused:
        parse_picture(SVG % content)
    assert refused.value.path == ("input", "svg")


def test_the_encoding_that_a_file_declares_is_not_applied_to_text() -> None:
    """What the client sent as text is not decoded a second time."""
    drawing = '<?xml version="1.0" encoding="ISO-8859-1"?>' + SVG % "<text>Žofie née</text>"
    assert "Žofie née" in parse_picture(drawing)
    assert "Žofie née" in parse_picture("\ufeff" + drawing)


@pytest.mark.parametrize(
    ("style", "fill"),
    [
        ("@" * 48_000, "red"),
        ("/*" * 24_000, "red"),
        ("a" * 48_000, "red"),
        ("@{}" * 8_000 + "@{" * 12_000, "red"),
        ("path{fill:" + "rgb" * 16_000 + "}", "red"),
        ("", "a" * 48_000),
        ("", "url" + " " * 48_000),
        ("", "rgb" * 16_000 + "("),
    ],
    ids=lambda text: f"{text[:12]}, {len(text)}",
)
def test_long_repetitions_are_read_once(style: str, fill: str) -> None:
    """Patterns that begin anew at each character took ten thousand times as long as for any other picture."""
    ordinary = "<svg xmlns='http://www.w3.org/2000/svg'>" + "<path d='M0 0'/>" * 2_000 + "</svg>"
    picture = f"<svg xmlns='http://www.w3.org/2000/svg'><style>{style}</style><path d='M0 0' fill='{fill}'/></svg>"
    assert _processor_seconds(picture) < 200 * _processor_seconds(ordinary)


def _processor_seconds(picture: str) -> float:
    began = process_time()
    assert "<path" in sanitize(picture)
    return process_time() - began


def test_spaces_before_a_text_are_read_once() -> None:
    with pytest.raises(InvalidInput):
        sanitize(" " * 48_000 + "svg")


def test_a_comment_that_never_ends_takes_the_rest_of_its_sheet() -> None:
    sheet = "path{fill:red} /* path{fill:blue}"
    assert "fill:red" in sanitize(
        f"<svg xmlns='http://www.w3.org/2000/svg'><style>{sheet}</style><path d='M0 0'/></svg>"
    )
