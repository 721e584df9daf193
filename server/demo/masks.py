"""Two dozen wrestlers' masks, drawn for this project: a head, two eyes, a mouth, and what makes each its own."""

# ruff: noqa: E501 - the data of a path are one text

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_HEAD = "M50 6C24 6 13 26 13 50c0 21 9 37 22 43 9 4 21 4 30 0 13-6 22-22 22-43C87 26 76 6 50 6z"

_EYES: Mapping[str, str] = {
    "almond": '<path d="M20 46q11-12 24 2-13 9-24-2zM80 46q-11-12-24 2 13 9 24-2z"/>',
    "round": '<circle cx="33" cy="46" r="9"/><circle cx="67" cy="46" r="9"/>',
    "drop": '<path d="M45 50q-4 8-12 6T23 42q12-4 22 8zM55 50q4 8 12 6t10-14q-12-4-22 8z"/>',
    "diamond": '<path d="M33 36l11 10-11 9-11-9zM67 36l11 10-11 9-11-9z"/>',
    "slit": '<path d="M20 42l24 5-2 6-20-4zM80 42l-24 5 2 6 20-4z"/>',
}

_MOUTHS: Mapping[str, str] = {
    "oval": '<ellipse cx="50" cy="74" rx="13" ry="7"/>',
    "grin": '<path d="M35 69q15 7 30 0-2 14-15 14T35 69z"/>',
    "bar": '<rect x="36" y="69" width="28" height="9" rx="4"/>',
    "kiss": '<path d="M50 67l7 6-7 8-7-8z"/>',
}

_MARKS: Mapping[str, str] = {
    "comet": '<path d="M50 10l3 9 9 1-7 6 2 9-7-5-7 5 2-9-7-6 9-1z"/><path d="M61 22q14 4 20 18-8-9-20-12z"/>',
    "wave": '<path d="M13 56q9-10 18 0t19 0 19 0 18 0l-2 9q-8 7-16 0t-19 0-19 0-16 0z"/>',
    "bolt": '<path d="M54 6L40 30h9l-5 22 17-28h-9l7-18z"/>',
    "flames": '<path d="M16 34q3-18 14-25 0 10 7 14 1-12 13-19 12 7 13 19 7-4 7-14 11 7 14 25-8-6-14-5-6 0-9 7-4-8-11-8t-11 8q-3-7-9-7-6-1-14 5z"/>',
    "moon": '<path d="M56 11a14 14 0 1 0 8 23 12 12 0 1 1-8-23z"/>',
    "sun": '<circle cx="50" cy="25" r="9"/><path d="M50 9l2 5h-4zM34 25l5-2v4zM66 25l-5-2v4zM39 14l5 3-3 3zM61 14l-5 3 3 3z"/>',
    "feathers": '<path d="M50 32q-4-14 0-25 4 11 0 25zM44 32q-10-10-11-21 9 8 11 21zM56 32q10-10 11-21-9 8-11 21zM39 35q-13-6-17-15 12 4 17 15zM61 35q13-6 17-15-12 4-17 15z"/>',
    "horns": '<path d="M22 26Q14 16 17 3q12 4 17 14zM78 26q8-10 5-23-12 4-17 14z"/>',
    "crown": '<path d="M28 30l-3-17 11 8 14-13 14 13 11-8-3 17q-22-7-44 0z"/>',
    "heart": '<path d="M50 35q-16-10-14-20 2-8 9-6 4 1 5 5 1-4 5-5 7-2 9 6 2 10-14 20z"/>',
    "stripes": '<path d="M44 6h12v30H44zM15 40l-2 12 6 2zM85 40l2 12-6 2zM30 88l5-12 5 4-2 15zM70 88l-5-12-5 4 2 15z"/>',
    "leaf": '<path d="M50 36Q30 26 50 7q20 19 0 29zM49 12h2v24h-2z"/>',
    "web": '<path d="M49 6h2v30h-2zM30 12l18 24 1-1L32 11zM70 12L52 36l-1-1 17-24zM36 22q14 7 28 0v2q-14 7-28 0zM42 30q8 4 16 0v2q-8 4-16 0z"/>',
    "anchor": '<path d="M48 14a4 4 0 1 1 4 0v4h6v3h-6v9q6-1 8-6l3 3q-4 8-13 8t-13-8l3-3q2 5 8 6v-9h-6v-3h6z"/>',
    "mountain": '<path d="M22 34l16-22 9 11 6-8 25 19q-28-9-56 0z"/>',
    "scales": '<path d="M26 24q6-6 12 0-6 7-12 0zM38 24q6-6 12 0-6 7-12 0zM50 24q6-6 12 0-6 7-12 0zM62 24q6-6 12 0-6 7-12 0zM32 15q6-6 12 0-6 7-12 0zM44 15q6-6 12 0-6 7-12 0zM56 15q6-6 12 0-6 7-12 0zM44 33q6-6 12 0-6 7-12 0z"/>',
}


class Mask(NamedTuple):
    """Whose it is, its four colours (cloth, trim, mark, skin's shadow), and its pieces."""

    name: str
    cloth: str
    trim: str
    mark: str
    eyes: str
    mouth: str
    ornament: str


MASKS = (
    Mask("Captain Comet", "#27408b", "#f7c948", "#f7c948", "almond", "grin", "comet"),
    Mask("The High BoardSettler", "#0b7a75", "#d7f9f1", "#7bdff2", "drop", "oval", "wave"),
    Mask("Doctor Thunder", "#3a3a4a", "#ffd23f", "#ffd23f", "slit", "bar", "bolt"),
    Mask("Emberjaw", "#b3261e", "#ffb238", "#ff7a1a", "slit", "grin", "flames"),
    Mask("Half Moon Hanna", "#46327e", "#e8e6f8", "#f4f1de", "almond", "kiss", "moon"),
    Mask("Old Sunday", "#e07a1f", "#fff3d6", "#ffe066", "round", "grin", "sun"),
    Mask("Madame Heron", "#5b7f95", "#f5f5f5", "#f5f5f5", "drop", "kiss", "feathers"),
    Mask("The Ox from Oslo", "#7a4b2b", "#e9d8a6", "#e9d8a6", "round", "bar", "horns"),
    Mask("King of Tuesdays", "#7b2d5b", "#f2c14e", "#f2c14e", "diamond", "grin", "crown"),
    Mask("Sweet Rosalind", "#e56b8f", "#fff0f5", "#c2185b", "round", "kiss", "heart"),
    Mask("Zebra Crossing", "#f2f2f2", "#1f1f1f", "#1f1f1f", "slit", "oval", "stripes"),
    Mask("Evergreen", "#2f6b3c", "#dcedc1", "#a8d672", "almond", "oval", "leaf"),
    Mask("Auntie Spider", "#202030", "#ef476f", "#c9c9d9", "diamond", "kiss", "web"),
    Mask("Harbour Master", "#1d3557", "#f1faee", "#e63946", "round", "bar", "anchor"),
    Mask("Alpine Annie", "#9ad1d4", "#12355b", "#ffffff", "almond", "grin", "mountain"),
    Mask("The Green Carp", "#5a8f29", "#fefae0", "#f4a259", "round", "oval", "scales"),
    Mask("Night Courier", "#14213d", "#fca311", "#e5e5e5", "slit", "bar", "moon"),
    Mask("Copper Rooster", "#b5532a", "#fde8cd", "#8c1c13", "drop", "grin", "feathers"),
    Mask("Lady Static", "#f7e733", "#3d348b", "#3d348b", "diamond", "kiss", "bolt"),
    Mask("Grandfather Frost", "#cfe8f3", "#28587b", "#ffffff", "drop", "oval", "mountain"),
    Mask("The Second Sun", "#ffcf56", "#a30015", "#a30015", "almond", "bar", "sun"),
    Mask("Velvet Minotaur", "#56203d", "#d9b26f", "#d9b26f", "diamond", "bar", "horns"),
    Mask("Coral Queen", "#ff6f61", "#fff5e4", "#ffe3d8", "almond", "kiss", "crown"),
    Mask("Deep Blue Dolores", "#1b4965", "#bee9e8", "#62b6cb", "drop", "grin", "wave"),
)


def drawing(mask: Mask) -> str:
    """The mask as SVG."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><title>{mask.name}</title>'
        f'<path fill="{mask.cloth}" stroke="#00000033" stroke-width="2" d="{_HEAD}"/>'
        f'<g fill="{mask.mark}">{_MARKS[mask.ornament]}</g>'
        f'<g fill="#17171f" stroke="{mask.trim}" stroke-width="4" stroke-linejoin="round">'
        f"{_EYES[mask.eyes]}{_MOUTHS[mask.mouth]}</g>"
        f'<path fill="none" stroke="{mask.trim}" stroke-width="2" stroke-dasharray="3 3" d="M50 56v7"/></svg>'
    )
