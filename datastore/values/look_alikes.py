"""Letters of other scripts that look like one of a to z.

From Unicode's confusables.txt 14.0.0 (UTS #39; © Unicode, Inc., under the Unicode License): each letter that is written
from left to right, has no decomposition, and looks like a single letter of ASCII. A capital that looks like I and l is
an i. docs/decisions/comments.md says why this table is here, and how to make it again.
"""

from __future__ import annotations

from typing import Final

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
