"""Texts in the forms of Unicode in which they are compared. No other module brings a text into one.

Invariant: a text is brought into a form only if it has at most `MOST_MARKS` accents and other combining marks in a row,
as in Unicode's stream-safe text format (UAX #15). Each run of them has to be sorted, which takes time by its square, so
without a bound a text of 50,000 marks would take seconds; with it, the time follows the length of the text.
"""

import re
from typing import Final, Literal, TypeAlias
from unicodedata import combining, normalize

from datastore.refusals import InvalidInput

Form: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_MARKS = 30
_TOO_MANY = re.compile(rb"[^\0]{%d}" % (MOST_MARKS + 1))
_AT_ONCE = 32
"""Characters that are decomposed together to be counted: so few that the square does not matter."""


def is_stream_safe(text: str) -> bool:
    """Whether a text may be brought into a form. Marks that a character decomposes into count as well."""
    if text.isascii():
        return True
    parts = (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))
    classes = bytes(map(combining, "".join(normalize("NFKD", part) for part in parts)))
    return _TOO_MANY.search(classes) is None


def folded(name: str) -> str:
    """A name in the form that is compared: without case and compatibility forms."""
    return in_form("NFKC", in_form("NFKC", name).casefold())


def in_form(form: Form, text: str) -> str:
    """The text in a form; InvalidInput for one that is not stream-safe."""
    if not is_stream_safe(text):
        raise InvalidInput(f"No text here has more than {MOST_MARKS} accents or other marks in a row.")
    return normalize(form, text)


# ── look alikes ──
# Letters of other scripts that look like one of a to z.
#
# From Unicode's confusables.txt 14.0.0 (UTS #39; © Unicode, Inc., under the Unicode License): each letter that is
# written from left to right, has no decomposition, and looks like a single letter of ASCII. A capital that looks like I
# and l is an i. docs/decisions/comments.md says why this table is here, and how to make it again.

LOOK_ALIKES: Final = {
    "a": "ɑΑαАаᎪᗅꓮ𐊠𖽀",
    "b": "ƄΒВЬᏏᏴᑲᖯᗷꓐꞴ𐊂𐊡𐌁",
    "c": "СсᏟᴄⲤⲥꓚꮯ𐊢𐌂𐐕𐐽𐔜",
    "d": "ԁᎠᏧᑯᗞᗪꓒꓓ",
    "e": "ΕЕеҽᎬⴹꓰꬲ𐊆𑢦𑢮",
    "f": "ϜքᖴẝꓝꞘꞙꬵ𐊇𐊥𐔥𑢢𑣂",
    "g": "ƍɡԌցᏀᏳᶃꓖ",
    "h": "ΗНһհᎻᏂᕼⲎꓧ𐋏",
    "i": "ıƖɩɪΙιІіӀӏᎥⲒꙇꭵ𑣃",
    "j": "ͿϳЈјᎫᒍꓙꞲ",
    "k": "ΚКᏦᛕⲔꓗ𐔘",
    "l": "ǀᏞᒪᛁⳐⵏꓡꓲ𐊊𐌉𐐛𐔦𑢣𑢲𖼖𖼨",
    "m": "ΜϺМᎷᗰᛖⲘꓟ𐊰𐌑",
    "n": "ΝոռⲚꓠ𐔓",
    "o": "ΟοσОоՕօଠഠဝჿዐᴏᴑⲞⲟⵔꓳꬽ𐊒𐊫𐐄𐐬𐓂𐓪𐔖𑢵𑣈𑣗",
    "p": "ΡρРрᏢᑭⲢⲣꓑ𐊕",
    "q": "ԛգզⵕ",
    "r": "ƦгᎡᏒᖇᴦⲅꓣꭇꭈꮁ𐒴𖼵",
    "s": "ƽЅѕՏᏕᏚꓢꜱꮪ𐊖𐐠𐑈𑣁𖼺",
    "t": "ΤТᎢⲦꓔ𐊗𐊱𐌕𑢼𖼊",
    "u": "ʋυՍսሀᑌᴜꓴꞟꭎꭒ𐓎𐓶𑢸𑣘𖽂",
    "v": "νѴѵᏙᐯᴠⴸꓦꛟꮩ𐔝𑜆𑢠𑣀𖼈",
    "w": "ɯѡԜԝաᎳᏔᴡꓪꮃ𑜊𑜎𑜏",
    "x": "ΧХхᕁᕽᚷⲬⵝꓫꞳ𐊐𐊴𐌗𐔧",
    "y": "ɣʏΥγУуҮүყᎩᎽᶌỿⲨꓬꭚ𐊲𑢤𑣜𖽃",
    "z": "ΖᏃᴢꓜꮓ𑢩𑣄",
}
_AS_SEEN = {ord(letter): seen for seen, letters in LOOK_ALIKES.items() for letter in letters}


def as_seen(text: str) -> str:
    """The text with a to z in place of what looks like them."""
    return text if text.isascii() else text.translate(_AS_SEEN)
