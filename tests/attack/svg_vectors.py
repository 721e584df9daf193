"""Every known way to make an SVG act, load, link or restyle: the tricks of `tests.pictures`, and combinations."""

from tests.pictures import TRICKS

ELSEWHERE = "https://evil.example/x"
HANDLERS = ("onload", "onerror", "onclick", "onbegin", "onend", "onrepeat", "onfocusin", "onmouseover", "onpointerdown",
            "onanimationstart", "ontransitionend", "onwheel", "oncopy", "onunload", "onscroll", "onresize")  # fmt: skip
LINKS = ("javascript:alert(1)", "JaVaScRiPt:alert(1)", "java&#9;script:alert(1)", "&#1;javascript:alert(1)",
         "data:text/html,&lt;script>alert(1)&lt;/script>", "vbscript:x", "blob:x", "//evil.example/x", ELSEWHERE,
         "file:///etc/passwd", "/logout", "\\\\evil.example\\x")  # fmt: skip
LOADING = ("fill", "stroke", "filter", "mask", "clip-path", "marker-start", "marker-end", "cursor", "color-profile")
STYLES = ("background:url(%s)", "list-style:url(%s)", "content:url(%s)", "behavior:url(%s)", "-moz-binding:url(%s)",
          "src:url(%s)", "shape-outside:url(%s)", "offset-path:url(%s)", "border-image:url(%s)", "mask-image:url(%s)",
          "fill:u\\72l(%s)", "fill:URL('%s')", "fill:/**/url(/**/%s)", "filter:url(%s) blur(9px)")  # fmt: skip
COVERING = ("position:fixed;inset:0;z-index:9", "position:absolute;top:0;left:0;width:9999px;height:9999px",
            "display:block;margin:-9999px", "float:left;width:100vw", "transform:scale(999)", "zoom:99",
            "all:unset;position:sticky", "contain:none;overflow:visible")  # fmt: skip
ELEMENTS = ("script", "foreignObject", "iframe", "embed", "object", "image", "feImage", "use", "a", "animate", "set",
            "handler", "listener", "video", "audio", "source", "link", "meta", "base", "style", "form", "input",
            "textarea", "noscript", "template", "slot", "portal", "math", "title", "desc", "metadata")  # fmt: skip


def _combinations() -> dict[str, str]:
    return {
        **{f"handler {name}": f'<rect width="9" height="9" {name}="alert(1)"/>' for name in HANDLERS},
        **{f"link to {to}": f'<a href="{to}"><text y="9">x</text></a>' for to in LINKS},
        **{f"use of {to}": f'<use href="{to}#x"/>' for to in LINKS},
        **{f"{name} elsewhere": f'<rect width="9" height="9" {name}="url({ELSEWHERE}#x)"/>' for name in LOADING},
        **{f"style {style}": f'<rect width="9" style="{style % ELSEWHERE}"/>' for style in STYLES},
        **{f"sheet {style}": f"<style>* {{ {style % ELSEWHERE} }}</style>" for style in STYLES},
        **{f"cover {style}": f'<rect width="9" height="9" style="{style}"/>' for style in COVERING},
        **{f"sheet of the page {style}": f"<style>body, #canary {{ {style} }}</style>" for style in COVERING},
        **{
            f"element {name}": f'<{name} src="{ELSEWHERE}" href="{ELSEWHERE}" data="{ELSEWHERE}" onload="alert(1)">'
            f"alert(1)</{name}>"
            for name in ELEMENTS
        },
        **{
            f"HTML {name}": f'<h:{name} xmlns:h="http://www.w3.org/1999/xhtml" src="{ELSEWHERE}" href="{ELSEWHERE}" '
            f'onload="alert(1)">alert(1)</h:{name}>'
            for name in ELEMENTS
        },
        "broken out of an attribute": '<rect id="&quot;>&lt;img src=x onerror=alert(1)>"/>',
        "broken out of a text": "<text>&lt;/text>&lt;/svg>&lt;img src=x onerror=alert(1)></text>",
        "broken out of a title": "<title>&lt;/title>&lt;script>alert(1)&lt;/script></title>",
        "broken out of a comment": "<!-- --!><img src=x onerror=alert(1)> -->",
        "an id of the page": '<g id="canary"/><g id="pictures"/><g id="location" name="ran"/>',
    }


VECTORS = {**TRICKS, **_combinations()}
