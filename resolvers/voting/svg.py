"""Sanitising SVG from untrusted users: pictures that cannot act, load anything, or touch the page that inlines them.

py-svg-hush filters elements and attributes by an allow-list. A check before it refuses expensive input (depth,
entities). What it leaves is rebuilt from a shorter list: no scripts, links, images, animations or style sheets
(`inline_styles`), and no references to anything outside. Finally the elements are counted as often as they are drawn,
because a few kilobytes of `<use>` can stand for millions.

`parse_picture` also refuses what would be stored and never be seen: a picture of which nothing is left to draw.
`preview_picture` says what the rest of this removes.

A picture of 48 KB takes up to 80 ms, so a server sanitises it in a thread.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET
from xml.parsers import expat

from py_svg_hush import filter_svg

from datastore.refusals import InvalidInput

# ── style sheets ──

_PROPERTY_NAMES = """
alignment-baseline baseline-shift clip-path clip-rule color color-interpolation color-interpolation-filters
direction display dominant-baseline fill fill-opacity fill-rule filter flood-color flood-opacity font font-family
font-size font-stretch font-style font-variant font-weight letter-spacing lighting-color marker marker-end
marker-mid marker-start mask opacity overflow paint-order shape-rendering stop-color stop-opacity stroke
stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width
text-anchor text-decoration text-rendering transform transform-origin vector-effect visibility word-spacing
writing-mode
"""
PROPERTIES = frozenset(_PROPERTY_NAMES.split())
_FUNCTION_NAMES = """
url rgb rgba hsl hsla matrix translate translatex translatey scale scalex scaley rotate skewx skewy
blur brightness contrast drop-shadow grayscale hue-rotate invert opacity saturate sepia
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_OUTSIDE = re.compile(
    r"//|\\|javascript:|vbscript:|data:|@|url\((?!\s*['\"]?#[\w.-]+['\"]?\s*\))|url\s+\(", re.IGNORECASE
)
# No character is looked at by more than one attempt to match: texts of 48 KB took a minute before.
_FUNCTION = re.compile(r"(?<![\w-])([\w-]++)\s*+\(")
_VALUE = re.compile(r"[\w\s.,#%+\-()'\"/]*")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_AT_RULE = re.compile(r"@[^{};@]*+(?:;|\{(?:[^{}]|\{[^{}]*+\})*+\})")
_RULE = re.compile(r"(?<![^{}])([^{}]*+)\{([^{}]*+)\}")
_SELECTOR = re.compile(r"([.#]?)([A-Za-z_][\w-]*)")
_SPECIFICITY = ("", ".", "#")


class TooLarge(Exception):
    """The picture would become much larger than it was."""


def refers_outside(value: str) -> bool:
    """Whether an attribute's value names something outside the picture, or a function that might."""
    return bool(_OUTSIDE.search(value)) or any(name.lower() not in _FUNCTIONS for name in _FUNCTION.findall(value))


def safe_declarations(text: str) -> dict[str, str]:
    """The declarations of a `style` attribute or a rule that only draw."""
    safe = {}
    for declaration in _COMMENT.sub(" ", text).split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip().lower(), value.replace("!important", "").strip()
        if name in PROPERTIES and value and _VALUE.fullmatch(value) and not refers_outside(value):
            safe[name] = value
    return safe


def inline_styles(root: ET.Element, texts: list[str], largest: int) -> None:
    """Set each element's `style` to what the style sheets and its own attribute say, and remove its classes.

    Rules may take `largest` characters where they are applied: a short one can select thousands of elements.
    """
    rules, taken = _rules_by_selector(" ".join(texts)), 0
    for element in root.iter():
        matching = sorted(rule for selector in _selectors(element) for rule in rules.get(selector, ()))
        taken += sum(rule.size for rule in matching)
        if taken > largest:
            raise TooLarge
        declarations: dict[str, str] = {}
        for rule in matching:
            declarations |= rule.declared
        declarations |= safe_declarations(element.attrib.pop("style", ""))
        if declarations:
            element.set("style", ";".join(f"{name}:{value}" for name, value in declarations.items()))


def _selectors(element: ET.Element) -> set[tuple[str, str]]:
    """Kind and name of each simple selector that selects an element, whose classes are removed."""
    classes = element.attrib.pop("class", "").split()
    return {("", _local(element.tag)), ("#", element.get("id", "")), *((".", name) for name in classes)}


class _Rule(NamedTuple):
    """The declarations of a rule for one of its selectors."""

    order: int
    """Its place among all rules, unlike any other's: later ones override."""
    size: int
    declared: dict[str, str]


def _rules_by_selector(text: str) -> dict[tuple[str, str], list[_Rule]]:
    rules: dict[tuple[str, str], list[_Rule]] = {}
    ordered = sorted(_rules(text), key=lambda rule: _SPECIFICITY.index(rule[0]))
    for order, (kind, name, size, declared) in enumerate(ordered):
        rules.setdefault((kind, name), []).append(_Rule(order, size, declared))
    return rules


def _rules(text: str) -> Iterator[tuple[str, str, int, dict[str, str]]]:
    """Kind and name of each simple selector, and the declarations of its rule with their size."""
    sheet = _AT_RULE.sub(" ", _COMMENT.sub(" ", text))
    for selectors, body in _RULE.findall(sheet) if "@" not in sheet else ():
        declared = safe_declarations(body)
        size = sum(len(name) + len(value) + 2 for name, value in declared.items())
        for selector in selectors.split(",") if declared else ():
            simple = _SELECTOR.fullmatch(selector.strip())
            if simple:
                yield simple[1], simple[2], size, declared


# ── svg ──

LARGEST = 48 * 1024
LARGEST_RESULT = 8 * LARGEST
"""Bytes of a sanitised picture, in which rules are repeated at every element and all is indented: an item of the table
has 400 KB at most.
"""
DEEPEST = 64
MOST_DRAWN = 50_000
"""Elements, each counted as often as others refer to it. A picture of 48 KB has 4,000 of its own at most."""

_ELEMENTS = """svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textPath title desc
linearGradient radialGradient stop clipPath mask pattern marker filter
feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap
feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology
feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence
"""
ELEMENTS = frozenset(_ELEMENTS.split())
_SHAPES = frozenset(["path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text"])
_CONTAINERS = frozenset(["svg", "g", "symbol"])
"""Elements whose children are drawn where they stand, or where they are used."""
_GROUPS = frozenset(["a", "switch"])
"""They become groups: what they contain is drawn."""
_NOT_ON_THE_ROOT = frozenset(["transform", "filter", "overflow", "style", "display", "position"])
"""On the root they would move or draw the picture over the page around it."""
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_LENGTH = re.compile(r"\s*\d{1,5}(\.\d*)?(px|pt|mm|cm|in|em|%)?\s*")
_REFERENCE = re.compile(r"url\(\s*['\"]?#([\w.-]+)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_DECIMAL = re.compile(r"[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?")
_CSS_FILTER = re.compile(r"(?:blur|drop-shadow)\s*\(([^;]*)", re.IGNORECASE)
_COLOUR = re.compile(r"#\w+")
LARGEST_NUMBER = 1_000_000
"""Of coordinates, sizes and transformations; a browser would make a bitmap of what a filter covers."""
_LARGEST_OF_FILTERS = {"stdDeviation": 100, "radius": 100, "numOctaves": 10, "order": 16, "filterRes": 2_000}
_LARGEST_IN_CSS = 255
_STYLING = frozenset(["class", "style"])
_NOT_NUMBERS = frozenset(["id", "class", "href"])
_ROOT = re.compile(r"<svg(?=[\s/>])")
_DECLARATION = re.compile(r"\A\s*<\?xml\s[^>]*\?>")
"""The declaration names the encoding of a file; a text that was decoded has none."""
_TAG = re.compile(r"<([A-Za-z][\w.:-]*)")
_PATH = ("input", "svg")

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", _XLINK)


class _TooComplex(Exception):
    """The SVG is nested too deeply, declares entities, or draws too much."""


def sanitize(text: str) -> str:
    """The SVG without anything active or external, or InvalidInput."""
    if len(text.encode()) > LARGEST:
        raise InvalidInput(
            f"A picture has at most {LARGEST // 1024} KB. Simplify it, or round its numbers.", path=_PATH
        )
    try:
        return _sanitized(_complete(text))
    except TooLarge:
        raise InvalidInput(
            f"This picture would have more than {LARGEST_RESULT // 1024} KB once its style sheet is applied to each "
            "element and all is indented. Use fewer or shorter rules, or nest less.",
            path=_PATH,
        ) from None
    except (_TooComplex, ValueError, expat.ExpatError, ET.ParseError):
        raise InvalidInput(
            "This SVG cannot be accepted: it must be well-formed, begin with <svg>, declare no entities, "
            f"nest at most {DEEPEST} levels deep, and draw at most {MOST_DRAWN} elements, repeated ones included.",
            path=_PATH,
        ) from None


def _sanitized(complete: str) -> str:
    _check_complexity(complete)
    filtered = filter_svg(complete.encode(), keep_data_url_mime_types={})
    # The filter's output has no document type, so it cannot expand entities.
    root = ET.fromstring(filtered)  # noqa: S314
    if root.tag != f"{{{_SVG}}}svg":
        raise InvalidInput("An SVG begins with <svg>.", path=_PATH)
    sheets: list[str] = []
    _rebuild(root, sheets)
    inline_styles(root, sheets, LARGEST_RESULT)
    _restrict_root(root)
    _check_numbers(root)
    _count_drawn(root)
    picture = ET.tostring(root, encoding="unicode")
    if len(picture.encode()) > LARGEST_RESULT:
        raise TooLarge
    return picture


def parse_picture(text: str) -> str:
    """The sanitised SVG, or InvalidInput if it is refused or none of it can be seen."""
    picture = sanitize(text)
    root = ET.fromstring(picture)  # noqa: S314 - without a document type
    if not _draws(root, _by_id(root)):
        raise InvalidInput(f"This picture would be invisible: {_reason(text)}", path=_PATH)
    return picture


class PicturePreview(NamedTuple):
    """A picture as it would be stored, and what of the text would not be."""

    svg: str
    removed: tuple[str, ...]


def preview_picture(text: str) -> PicturePreview:
    """The sanitised SVG, and the elements and attributes that are missing from it; InvalidInput as above."""
    picture = parse_picture(text)
    # It declares no entities: that was checked.
    missing = _parts(ET.fromstring(_complete(text))) - _parts(ET.fromstring(picture))  # noqa: S314
    return PicturePreview(picture, tuple(sorted(missing)))


def _parts(root: ET.Element) -> Counter[str]:
    """How often each element and attribute is there, apart from styles, which the sanitised picture has elsewhere."""
    elements = [element for element in root.iter() if isinstance(element.tag, str) and _local(element.tag) != "style"]
    parts = Counter(f"<{_local(element.tag)}>" for element in elements)
    parts.update(_local(name) for element in elements for name in element.attrib)
    return Counter({part: count for part, count in parts.items() if part not in PROPERTIES | _STYLING})


def _local(name: str) -> str:
    """An element's or attribute's name without its namespace."""
    return name.rpartition("}")[2]


def _draws(root: ET.Element, by_id: Mapping[str, ET.Element]) -> bool:
    """Whether an element draws a shape, itself or by what it uses."""
    pending, seen = [root], {root}  # no recursion: elements may use each other in a long chain
    while pending:
        element = pending.pop()
        local = _local(element.tag)
        if "".join(element.itertext()).strip() if local == "text" else local in _SHAPES:
            return True
        inner: list[ET.Element] = []
        if local == "use":
            ids = {id_ for name, value in element.items() if name.endswith("href") for id_ in _ids(value)}
            inner = [by_id[id_] for id_ in ids if id_ in by_id]
        elif local in _CONTAINERS:
            inner = [child for child in element if not child.tag.endswith("}symbol")]
        pending += [each for each in inner if each not in seen]
        seen.update(inner)
    return False


def _reason(text: str) -> str:
    """Why nothing of a picture is left."""
    removed = sorted({tag for tag in _TAG.findall(text) if tag.rpartition(":")[2] not in ELEMENTS | _GROUPS})
    if not removed:
        return "it draws nothing. Draw shapes, paths or text."
    names = ", ".join(f"<{name}>" for name in removed[:5])
    be = "are" if len(removed) > 1 else "is"
    return f"{names} {be} removed, and nothing else is drawn. Use shapes, paths or text."


def _complete(text: str) -> str:
    """Without the marks of a file, and with the namespaces that SVG inside HTML may leave out."""
    text, missing = _DECLARATION.sub("", text.removeprefix("\ufeff"), count=1), ""
    if f'"{_SVG}"' not in text and f"'{_SVG}'" not in text:
        missing += f' xmlns="{_SVG}"'
    if "xlink:" in text and "xmlns:xlink" not in text:
        missing += f' xmlns:xlink="{_XLINK}"'
    return _ROOT.sub(f"<svg{missing}", text, count=1) if missing else text


def _check_complexity(text: str) -> None:
    """Refuse deep nesting and entities: the filter's indentation grows with the square of the depth."""
    depth = 0

    def begin(_: str, __: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _TooComplex

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def entity(*_: object) -> None:
        raise _TooComplex

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = entity
    parser.Parse(text.encode(), True)


def _rebuild(element: ET.Element, sheets: list[str]) -> None:
    """Leave drawing elements and their own references; collect the texts of the style sheets."""
    for name, value in list(element.attrib.items()):
        local = _local(name)
        is_outside = not value.startswith("#") if local == "href" else name != "style" and refers_outside(value)
        if is_outside or local == "base" or local.startswith("on"):
            del element.attrib[name]
    for child in list(element):
        namespace, _, local = child.tag.rpartition("}")
        if namespace == f"{{{_SVG}" and local in _GROUPS:
            child.tag, child.attrib = f"{{{_SVG}}}g", {k: v for k, v in child.attrib.items() if "href" not in k}
            local = "g"
        if namespace == f"{{{_SVG}" and local in ELEMENTS:
            _rebuild(child, sheets)
            continue
        if local == "style":
            sheets.append(child.text or "")
        element.remove(child)


def _restrict_root(root: ET.Element) -> None:
    """Keep the picture within its own box."""
    declarations = [declaration.partition(":") for declaration in root.get("style", "").split(";")]
    style = ";".join(f"{name}:{value}" for name, _, value in declarations if name and name not in _NOT_ON_THE_ROOT)
    for name in _NOT_ON_THE_ROOT:
        root.attrib.pop(name, None)
    for name in ("width", "height"):
        if not _LENGTH.fullmatch(root.get(name, "1")):
            del root.attrib[name]
    if style:
        root.set("style", style)


def _check_numbers(root: ET.Element) -> None:
    """Refuse what a browser would work on for long: huge shapes, and filters that blur far or repeat often."""
    for element in root.iter():
        for name, value in element.items():
            local = _local(name)
            limited = [(text, _LARGEST_IN_CSS) for text in _CSS_FILTER.findall(value)]
            if local not in _NOT_NUMBERS:
                largest = _LARGEST_OF_FILTERS.get(local, LARGEST_NUMBER)
                limited += [(text, largest) for text in value.split(";") if "url(" not in text.lower()]
            for text, largest in limited:
                if any(abs(float(number)) > largest for number in _DECIMAL.findall(_COLOUR.sub("", text))):
                    raise InvalidInput(
                        f"This picture has a number that is too large in {local!r}: {largest:,} is the largest.",
                        path=_PATH,
                    )


def _count_drawn(root: ET.Element) -> None:
    """Refuse pictures that are drawn many times larger than they are, or contain themselves."""
    by_id = _by_id(root)
    counts: dict[ET.Element, int] = {}
    unfinished: set[ET.Element] = set()

    def drawn(element: ET.Element) -> int:
        if element in unfinished:
            raise _TooComplex
        if element not in counts:
            unfinished.add(element)
            count = 1 + sum(map(drawn, element))
            for reference, times in _references(element):
                if reference in by_id:
                    count += times * drawn(by_id[reference])
            unfinished.discard(element)
            counts[element] = count
        return counts[element]

    try:
        if drawn(root) > MOST_DRAWN:
            raise _TooComplex
    except RecursionError:
        raise _TooComplex from None


def _by_id(root: ET.Element) -> dict[str, ET.Element]:
    """The elements that references find: of equal ids, browsers take the first."""
    return {id_: element for element in reversed(list(root.iter())) if (id_ := element.get("id"))}


def _ids(href: str) -> set[str]:
    """The ids that a `href` may mean: as it is written, or with its escapes decoded."""
    return {href[1:], unquote(href[1:])}


def _references(element: ET.Element) -> list[tuple[str, int]]:
    """The ids that an element refers to, and how often it draws each: markers once for every point of a line."""
    points = len(_NUMBER.findall(f"{element.get('d', '')} {element.get('points', '')}")) or 1
    references = []
    for name, value in element.attrib.items():
        if _local(name) == "href":
            references += [(id_, 1) for id_ in _ids(value)]
        elif "url" in value.lower():
            times = points if "marker" in name or "marker" in value else 1
            references += [(reference, times) for reference in _REFERENCE.findall(value)]
    return references
