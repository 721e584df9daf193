"""Draws horizontal bar charts as SVG, readable on light and dark pages."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, BAR, GAP = 860, 190, 70, 16, 14
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.highlighted{font-weight:700}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)
COLOURS = ("#4c78a8", "#f2a03d", "#54a24b", "#b279a2")
HIGHLIGHTED_COLOURS = ("#1f4f8b", "#c8710a", "#2c7a2c", "#7d4f73")


def bar_chart(title: str, rows: Sequence[tuple[str, Mapping[str, float]]], highlighted: str) -> str:
    """Draw a group of bars for each row, one bar per figure, in the given order, scaled to the largest figure."""
    labels = list(rows[0][1])
    largest = max(max(figures.values()) for _, figures in rows)
    group = len(labels) * (BAR + 2) + GAP
    height = 64 + len(rows) * group + 10
    box = f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        f"<style>{STYLE}</style>",
        f'<text x="0" y="18" class="highlighted">{escape(title)}</text>',
    ]
    for index, label in enumerate(labels):
        x = LEFT + index * 150
        parts.append(f'<rect x="{x}" y="30" width="12" height="12" fill="{COLOURS[index]}"/>')
        parts.append(f'<text x="{x + 18}" y="41">{escape(label)}</text>')
    for row, (name, figures) in enumerate(rows):
        top = 64 + row * group
        emphasis = ' class="highlighted"' if name == highlighted else ""
        middle = top + len(labels) * (BAR + 2) / 2 + 4
        parts.append(f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end"{emphasis}>{escape(name)}</text>')
        for index, label in enumerate(labels):
            width = max(1.0, figures[label] / largest * (WIDTH - LEFT - RIGHT))
            y = top + index * (BAR + 2)
            colour = (HIGHLIGHTED_COLOURS if name == highlighted else COLOURS)[index]
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colour}"/>')
            parts.append(f'<text x="{LEFT + width + 6:.1f}" y="{y + 13}"{emphasis}>{figures[label]:.3f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
