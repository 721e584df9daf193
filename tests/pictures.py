"""Tricks in an SVG, for `sanitize` and for a real browser that inlines what is left of them."""

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
    "style of the page": "<style>body { display: none } * { position: fixed }</style>",
    "style in a media query": "<style>@media all{.a{position:fixed}} @supports (x: y){b{z-index:9}}</style>",
    "style sheet left open": "<style>.a { position: fixed; } .b {</style>",
    "style in CDATA": "<style><![CDATA[ body { position: fixed } ]]></style>",
    "position": '<rect style="position:fixed;z-index:9;width:100vw;height:100vh;inset:0"/>',
    "position by class": '<style>.c { position: fixed; top: 0 }</style><rect class="c"/>',
    "class of the page": '<rect class="modal fixed inset-0"/>',
    "animation": '<rect><animate attributeName="fill" values="red;blue" dur="1s"/><animateMotion path="M0 0"/></rect>',
    "animated transform": '<rect><animateTransform attributeName="transform" type="scale" to="99"/></rect>',
    "set": '<rect><set attributeName="fill" to="red"/></rect>',
    "animation by style": '<rect style="animation:spin 1s;transition:all 1s"/>',
    "image function": "<rect style=\"fill:image('x.png');mask:image(x.png)\"/>",
    "src function": '<rect style="mask:src(&quot;/logout&quot;)" filter="src(\'/logout\')"/>',
    "element function": '<rect style="fill:element(#secret)" mask="cross-fade(url(#a), url(/logout))"/>',
    "custom property": '<rect style="--x:url(/logout);fill:var(--x)"/>',
    "attribute function": '<rect style="fill:attr(href url)"/>',
    "url with a space": '<rect style="fill:url (/logout)"/>',
    "font of the page": '<style>@font-face{font-family:a;src:local(x)}</style><text style="font-family:a">x</text>',
    "external font element": '<font-face><font-face-src><font-face-uri href="/logout"/></font-face-src></font-face>',
    "base": '<g xml:base="https://evil.example/"><use href="#a"/></g>',
    "link to a fragment": '<a href="#logout"><text>x</text></a>',
    "link by target": '<a target="_top" href="#x"><text>x</text></a>',
    "view": '<view id="v" viewBox="0 0 1 1"/>',
    "audio": '<audio xmlns="http://www.w3.org/1999/xhtml" src="/logout"/>',
    "discard": '<discard href="#x" begin="0s"/>',
    "script in a switch": "<switch><script>alert(1)</script><g/></switch>",
    "handler in a use": '<use href="#x" onfocus="alert(1)" tabindex="0"/>',
    "handler of a namespace": '<rect xmlns:on="http://www.w3.org/2001/xml-events" on:click="alert(1)"/>',
    "style with a closing tag": "<style>a{}&lt;/style&gt;&lt;img src=x&gt;</style>",
}

LARGE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 90" width="90" height="90">%s</svg>'
ORDINARY = {
    "gradients": LARGE
    % (
        '<defs><linearGradient id="l1"><stop offset="0" stop-color="red"/><stop offset="1" stop-color="#00f"/>'
        '</linearGradient><radialGradient id="r1" href="#l1"/></defs>'
        '<rect width="90" height="45" fill="url(#l1)"/><circle cx="45" cy="65" r="20" fill="url(#r1)"/>'
    ),
    "clip path and mask": LARGE
    % (
        '<clipPath id="c2"><circle cx="30" cy="30" r="25"/></clipPath>'
        '<mask id="m2"><rect width="90" height="90" fill="white"/><circle cx="60" cy="60" r="9"/></mask>'
        '<rect width="90" height="90" fill="green" clip-path="url(#c2)"/>'
        '<rect x="45" y="45" width="40" height="40" style="mask:url(#m2);fill:purple"/>'
    ),
    "text and transforms": LARGE
    % (
        '<g transform="translate(45 45) rotate(30) scale(1.2)"><text x="-30" font-family="serif" font-size="20">'
        '<tspan fill="red">Ab</tspan>cd</text></g><text x="5" y="85" style="font:bold 12px sans-serif">x</text>'
    ),
    "use": LARGE
    % (
        '<defs><symbol id="s4" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></symbol><g id="g4"><circle r="6"/></g></defs>'
        '<use href="#s4" width="40" height="40" fill="teal"/><use href="#g4" x="60" y="60"/><use href="#g4" x="30"/>'
    ),
    "style sheet of a drawing program": LARGE
    % (
        "<defs><style>.cls-1,.cls-2{fill:#c33;stroke:#000;stroke-width:4px}.cls-2{fill:none}"
        "#d5{opacity:.5}</style></defs>"
        '<rect class="cls-1" x="9" y="9" width="50" height="50"/><circle class="cls-2" cx="60" cy="60" r="20"/>'
        '<rect id="d5" x="40" y="5" width="30" height="30"/>'
    ),
    "pattern, marker and filter": LARGE
    % (
        '<pattern id="p6" width="10" height="10" patternUnits="userSpaceOnUse"><circle cx="5" cy="5" r="3"/></pattern>'
        '<marker id="k6" markerWidth="4" markerHeight="4" refX="2" refY="2"><circle cx="2" cy="2" r="2"/></marker>'
        '<filter id="f6"><feGaussianBlur stdDeviation="3"/></filter><rect width="90" height="40" fill="url(#p6)"/>'
        '<path d="M10 60L40 80L80 60" fill="none" stroke="red" stroke-width="3" marker-mid="url(#k6)"/>'
        '<circle cx="70" cy="70" r="15" filter="url(#f6)"/>'
    ),
    "switch and link": LARGE % '<switch><g><a href="#x"><rect width="40" height="40" fill="orange"/></a></g></switch>',
}
"""Drawings that must look the same afterwards."""
