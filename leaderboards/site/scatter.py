"""What each setting leaks and costs, as a picture that is part of its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import asinh
from textwrap import shorten
from typing import Self

from markupsafe import Markup

from leakboard.leaderboards.site.charts import outline
from leakboard.leaderboards.tables import Look

WIDTH, HEIGHT = 440, 330
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 40
"""Pixels around the axes."""
WIDE, DEEP = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
MOST = 24
"""Letters of a name."""
LETTER, LINE = 6.1, 13
"""Pixels of a letter of a name, on the mean, and of a line of names."""
TICKS = (-30, -10, -3, -1, 0, 1, 3, 10, 30, 100)
"""Points of utility; beyond one they stand as in a logarithm."""
AROUND = [
    (side, rise, gap)
    for gap in (7, 12, 20, 30)
    for side, rise in ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))
]
"""Where a name is tried: to the right, to the left, above, below, ever farther away."""
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Dot:
    """A setting.

    Attributes:
        name: stands beside it; '' for none.
        leak: from 0, where no more is found than by guessing, to 1.
        cost: points of utility lost.
        told: all of it in words.
        pale: it is shown for the sake of others.
        bound: at least so much leaks.
    """

    name: str
    leak: float
    cost: float
    look: Look
    href: str
    told: str
    pale: bool = False
    bound: bool = False


@dataclass(frozen=True)
class Scale:
    """Points of utility on the height of the picture."""

    low: float
    high: float

    @classmethod
    def of(cls, costs: Iterable[float]) -> Self:
        every = list(costs)
        return cls(asinh(min(-0.5, *every)) - 0.15, asinh(max(3.0, *every)) + 0.3)

    def y(self, cost: float) -> float:
        return TOP + DEEP * (1 - (asinh(cost) - self.low) / (self.high - self.low))

    @property
    def ticks(self) -> list[int]:
        return [tick for tick in TICKS if self.low <= asinh(tick) <= self.high]


def scatter(dots: Sequence[Dot], describes: str) -> Markup:
    """Cost (up) against leak (right), names on no sign and on no other name; '' where there is no dot."""
    if not dots:
        return Markup("")
    scale = Scale.of(dot.cost for dot in dots)
    places = [(_x(dot.leak), scale.y(dot.cost)) for dot in dots]
    order = sorted(range(len(dots)), key=lambda i: not dots[i].pale)
    parts = [_axes(scale), *(_sign(dots[i], *places[i]) for i in order), *_names(dots, places)]
    return Markup(
        '<svg class="scatter" viewBox="0 0 {} {}" role="group" aria-label="{}">\n{}</svg>\n'
    ).format(WIDTH, HEIGHT, describes, Markup("").join(parts))


def _x(leak: float) -> float:
    # Signs at the ends stand inside the frame as a whole.
    return LEFT + 9 + (WIDE - 18) * leak


def _axes(scale: Scale) -> Markup:
    right, foot = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for tick in scale.ticks:
        y = round(scale.y(tick), 1)
        parts.append(
            f'<path class="{"zero" if tick == 0 else "grid"}" d="M{LEFT} {y}H{right}"/>'
            f'<text class="tick" x="{LEFT - 6}" y="{y + 4:g}" text-anchor="end">{tick}</text>'
        )
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = f"{_x(share):g}"
        parts.append(
            f'<path class="grid" d="M{x} {TOP}V{foot}"/>'
            f'<text class="tick" x="{x}" y="{foot + 15}" text-anchor="middle">{share:g}</text>'
        )
    middle = (TOP + foot) / 2
    parts.append(
        f'<text class="axis" x="{(LEFT + right) / 2:g}" y="{HEIGHT - 6}" text-anchor="middle">'
        "leak: share of the privacy that is lost →</text>"
        f'<text class="axis" transform="translate(12 {middle:g}) rotate(-90)" text-anchor="middle">'
        "cost: points of utility →</text>"
        f'<text class="tick" x="{LEFT + 6}" y="{foot - 6}">↙ better</text>'
    )
    return Markup("".join(parts))


def _sign(dot: Dot, x: float, y: float) -> Markup:
    kinds = [*(["pale"] if dot.pale else []), *(["bound"] if dot.bound else [])]
    return Markup(
        '<a href="{}"{} style="--c: {}"><title>{}</title><path transform="translate({:.1f} {:.1f})" d="{}"/></a>\n'
    ).format(
        dot.href,
        Markup(' class="{}"').format(" ".join(kinds)) if kinds else "",
        dot.look.colour,
        dot.told,
        x,
        y,
        outline(dot.look.marker),
    )


def _names(dots: Sequence[Dot], places: Sequence[tuple[float, float]]) -> Iterator[Markup]:
    """Each where it covers nothing, beginning with those that have most neighbours."""
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    # Of the words on the picture itself.
    taken.append((LEFT, HEIGHT - BOTTOM - 2 * LINE, LEFT + 60, HEIGHT - BOTTOM))

    def crowd(i: int) -> int:
        x, y = places[i]
        return -sum(abs(x - other[0]) < 60 and abs(y - other[1]) < 30 for other in places)

    for i in sorted((i for i, dot in enumerate(dots) if dot.name), key=crowd):
        name, (x, y) = shorten(dots[i].name, MOST, placeholder=" …"), places[i]
        others = [box for n, box in enumerate(taken) if n != i]
        for side, rise, gap in AROUND:
            box = _box(x, y, len(name) * LETTER, side, rise, gap)
            if _inside(box) and not any(_meet(box, other) for other in others):
                break
        else:  # its sign tells the name to who points at it
            continue
        taken.append(box)
        line = ""
        if gap > 12:
            near = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
            line = f'<path class="leader" d="M{x:.1f} {y:.1f}L{near[0]:.1f} {near[1]:.1f}"/>'
        yield Markup('{}<text class="name" x="{:.1f}" y="{:.1f}">{}</text>\n').format(
            Markup(line), box[0], box[3] - 3, name
        )


def _box(x: float, y: float, long: float, side: int, rise: int, gap: float) -> Box:
    """Left, top, right and bottom of a name beside a point."""
    left = x + gap if side > 0 else x - gap - long if side < 0 else x - long / 2
    top = y - LINE / 2 + rise * (gap if side else gap + LINE / 2)
    return left, top, left + long, top + LINE


def _inside(box: Box) -> bool:
    return box[0] >= LEFT and box[2] <= WIDTH and box[1] >= TOP / 2 and box[3] <= HEIGHT - BOTTOM


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
