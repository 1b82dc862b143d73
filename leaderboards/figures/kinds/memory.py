"""Memorisation of released models: exposure of canaries under every defense."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Goal, LeakboardError, Record, TrainSettings, digest
from leakboard.bench.defending import DETECTORS
from leakboard.bench.records import Row, canonical_json, rows_of
from leakboard.bench.scoring import GAINED
from leakboard.bench.suites import format_settings
from leakboard.bench.tasks import CEILING, copies_of, planted_view
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import Place
from leakboard.leaderboards.rendering import (
    GREY,
    Axis,
    Panel,
    Plot,
    Point,
    Reference,
    Series,
    exact,
)
from leakboard.leaderboards.tables import (
    Interval,
    RecordSet,
    ResultsTable,
    count,
    display_name,
    format_parameters,
    mean_interval,
    mirrored_points,
    varying_names,
)

MARKERS = ("o", "s", "D", "^", "v", "P")
"""Markers from the fewest copies to the most."""
SHADES = ("#7fb8da", "#2f7fb8", "#0b3c66", "#061f36", "#061f36", "#061f36")
CLAIMED = "epsilon"
"""Parameter that is part of the claim and left out of the name of a setting."""
LINE, LEAST = 0.125, 0.3
"""Height of a line of a setting's name, and smallest height of a setting, in inches."""
Rows = dict[str, list[Record]]
"""Records of each row of the figure, which differ in seeds and in the number of copies of canaries."""


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """Exposure of canaries under every defense, with the numbers of the paper."""
    paper = found.suite.paper if found.suite else None
    yield "memory", memory(found.table, mirrored_points(paper) if paper else None)


def memory(table: ResultsTable, printed: pd.DataFrame | None = None) -> Plot:
    """Exposure of canaries in bits, with a row for each setting and a marker for each number of copies.

    It is the exposure gained by training if the records have it, else the total. Points are means over seeds with 95 %
    intervals; a single canary of one seed has none. Secrets that were never planted show chance.

    Args:
        printed: printed points of a paper, which are hollow in the rows of matching settings.

    Raises:
        LeakboardError: no record has an exposure.
    """
    records = [
        record
        for group in table.groups
        for setting in group.settings
        for record in setting.records.values()
    ]
    metrics = {leak.metric for record in records for leak in record.leaks if leak.status == "ok"}
    metric = GAINED if GAINED in metrics else "exposure"
    records = [record for record in records if _exposures(record, metric)]
    if not records:
        raise LeakboardError(
            "nothing to plot: no record has an exposure; plant canaries (`plant: {canaries: …}`) and "
            "run canary-exposure on a released model"
        )
    certified = {
        key
        for one in table.select(goal=Goal.MEMORISATION)
        if one.is_certified
        for key in one.setting.keys
    }
    counts = sorted({c for record in records for c in _exposures(record, metric)})
    signs = {copies: place for place, copies in enumerate(c for c in counts if c)}
    stated = [] if printed is None else rows_of(printed.dropna(subset=["exposure"]))
    theirs: dict[str, list[Row]] = {}
    for row in stated:
        theirs.setdefault(str(row["task"]), []).append(row)
    places: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record.cell.task, record.cell.model), []).append(record)
    panels = [
        _panel(Place(task, model).title, of_place, metric, signs, certified, theirs.get(task, []))
        for (task, model), of_place in places.items()
    ]
    return Plot("Memorisation of secrets", panels, _caption(records, metric, stated), columns=1)


def _exposures(record: Record, metric: str) -> dict[int, Interval]:
    """Exposure by number of copies, from the first leak of each."""
    found: dict[int, Interval] = {}
    for leak in record.leaks:
        if leak.metric == metric and leak.status == "ok" and leak.success is not None:
            one = leak.success
            found.setdefault(copies_of(leak.view), Interval(one.value, one.low, one.high))
    return found


def _panel(
    title: str,
    records: Sequence[Record],
    metric: str,
    signs: Mapping[int, int],
    certified: set[str],
    printed: Sequence[Row],
) -> Panel:
    rows: Rows = {}
    for record in records:
        rows.setdefault(_row_of(record), []).append(record)
    names = {
        defense: varying_names([canonical_json(r.cell.defense.params) for r in own], but=CLAIMED)
        for defense, own in _by_defense(records).items()
    }
    trained = _trained(records)
    some = any(record.key in certified for record in records)
    ordered = sorted(rows.values(), key=lambda own: _place(own[0], names))
    labels = []
    by_copies: dict[int, list[Point]] = {copies: [] for copies in (*signs, 0)}
    hollow: dict[int, list[Point]] = {copies: [] for copies in signs}
    for n, own in enumerate(ordered):
        label = _row_label(own[0], names, trained[own[0].key])
        if some and not any(record.key in certified for record in own):
            label += "\n(not certified)"
        labels.append((float(n), label))
        for copies in by_copies:
            values = [e[copies] for record in own if copies in (e := _exposures(record, metric))]
            if values:
                mean = mean_interval([one.value for one in values], values[0])
                at = exact(mean.value)
                # Of a single canary only the rank is known.
                if mean.high - mean.low < CEILING:
                    at = Interval(mean.value, mean.low, min(mean.high, CEILING))
                by_copies[copies].append(Point(at, exact(n + _offset(copies, signs)), detail=label))
        for row in printed:
            stated = json.loads(row["params"])
            copies = stated.pop("copies")
            params = own[0].cell.defense.params
            same = row["defense"] == own[0].cell.defense.name
            if same and copies in signs and all(params.get(k) == v for k, v in stated.items()):
                x, y = exact(float(row["exposure"])), exact(n + _offset(copies, signs))
                hollow[copies].append(Point(x, y))
    never = by_copies.pop(0)
    series = [Series(planted_view(0), never, GREY, "|", size=8)] if never else []
    for copies, points in by_copies.items():
        place = min(signs[copies], len(MARKERS) - 1)
        series.append(Series(planted_view(copies), points, SHADES[place], MARKERS[place]))
        if hollow[copies]:
            name = f"{planted_view(copies)}, as printed"
            series.append(Series(name, hollow[copies], SHADES[place], MARKERS[place], hollow=True))
    least = min([0.0, *(p.x.low for own in series for p in own.points if p.x.low == p.x.low)])
    what = "exposure gained by training" if metric == GAINED else "exposure of the secret"
    lines = max(label.count("\n") + 1 for _, label in labels)
    chance = next(
        leak.success.chance
        for leak in records[0].leaks
        if leak.metric == metric and leak.success is not None
    )
    return Panel(
        title,
        Axis(f"← {what}, bits", least - 0.4, CEILING + 0.6),
        Axis("", -0.6, len(labels) - 0.4, labels, rises=False),
        series,
        [
            Reference("x", chance, "mean of unseen secrets"),
            Reference("x", CEILING, "likeliest of all 10⁶", line="solid"),
        ],
        remark="" if some else "not certified",
        height=max(LEAST, LINE * lines + 0.08) * len(labels) + 0.7,
    )


def _row_of(record: Record) -> str:
    content = record.cell.model_dump(mode="json", exclude={"seed", "shadow"})
    return digest({**content, "plant": {**(content["plant"] or {}), "copies": ()}})


def _by_defense(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.cell.defense.name, []).append(record)
    return found


def _offset(copies: int, signs: Mapping[int, int]) -> float:
    """Vertical offset of a marker within its row, so that equal values are all visible."""
    return 0.13 * (signs[copies] - (len(signs) - 1) / 2) if copies else 0.0


def _place(record: Record, names: Mapping[str, list[str]]) -> tuple[Any, ...]:
    """Sort key of a row: defense, then parameters; detectors by increasing masking."""
    defense, params = record.cell.defense.name, record.cell.defense.params

    def rank(name: str) -> tuple[float, str]:
        value = params.get(name)
        if isinstance(value, int | float):
            return value, ""
        known = list(DETECTORS)
        return (known.index(value) if value in known else -1), str(value)

    return list(names).index(defense), *map(rank, [*reversed(names[defense]), CLAIMED])


def _trained(records: Sequence[Record]) -> dict[str, str]:
    """Training settings of each record, by key, that distinguish it from others of the same defense."""
    peers: dict[str, list[Record]] = {}
    for record in records:
        cell = record.cell
        peers.setdefault(digest([cell.cut, cell.defense.model_dump(mode="json")]), []).append(
            record
        )
    found = dict[str, str]()
    for own in peers.values():
        every = {record.key: record.cell.train.model_dump() for record in own}
        differ = [k for k in TrainSettings.model_fields if len({t[k] for t in every.values()}) > 1]
        found |= {
            key: format_settings({k: train[k] for k in differ}) for key, train in every.items()
        }
    return found


def _row_label(record: Record, names: Mapping[str, list[str]], trained: str) -> str:
    defense = record.cell.defense
    words = format_parameters(canonical_json(defense.params), names[defense.name], unset=False)
    text = ", ".join(filter(None, [display_name(defense.name), words]))
    if trained:
        text += "\n" + trained.replace(" ", ", ").replace("_", " ")
    if record.claim is not None and "epsilon" in record.claim.parameters:
        text += f"\nclaims ε = {record.claim.parameters['epsilon']:.3g}"
    return text


def _caption(records: Sequence[Record], metric: str, printed: Sequence[Row]) -> str:
    seeds = count(len({record.cell.seed for record in records}), "seed")
    gained = "Gained: minus the exposure under the public model. " if metric == GAINED else ""
    text = (
        "Exposure: log2(10⁶) − log2(rank of the secret among all 10⁶); each bit halves the rank. "
        f"{gained}Means over {seeds} with 95 % intervals where there are several canaries; a claim ε is of single texts, "
        "and k copies of one have kε. masked, missed: whether the detector finds the canary. Not certified: the attack is "
        "not shown to work without the defense."
    )
    if printed:
        row = printed[0]
        nothing = ", with nothing subtracted" if metric == GAINED else ""
        text += f" Hollow: as printed by {row['paper']} for {row['model']}{nothing}."
    return text
