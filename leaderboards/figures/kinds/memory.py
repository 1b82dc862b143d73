"""Memorisation of released models: exposure of canaries under every defense."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Estimate, Goal, LeakboardError, Record, digest, grouped
from leakboard.bench.defending import DETECTORS
from leakboard.bench.records import Row, canonical_json, rows_of
from leakboard.bench.scoring import GAINED
from leakboard.bench.tasks import CEILING, copies_of, planted_view
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import Place, row_axis
from leakboard.leaderboards.rendering import GREY, Axis, Panel, Plot, Point, Reference, Series
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

STYLES = [
    ("#7fb8da", "o"),
    ("#2f7fb8", "s"),
    ("#0b3c66", "D"),
    *(("#061f36", marker) for marker in "^vP"),
]
"""Colours and markers from the fewest copies to the most."""
CLAIMED = "epsilon"
"""Parameter that is part of the claim and left out of the name of a setting."""
LINE, LEAST = 0.125, 0.3
"""Height of a line of a setting's name, and smallest height of a setting, in inches."""


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
    records = [record for setting in table.settings for record in setting.records.values()]
    metrics = {leak.metric for record in records for leak in record.leaks if leak.status == "ok"}
    metric = GAINED if GAINED in metrics else "exposure"
    exposures = {r.key: own for r in records if (own := _exposures(r, metric))}
    records = [record for record in records if record.key in exposures]
    if not records:
        raise LeakboardError(
            "nothing to plot: no record has an exposure; plant canaries (`plant: {canaries: …}`) and "
            "run canary-exposure on a released model"
        )
    goal = table.select(goal=Goal.MEMORISATION)
    certified = {key for one in goal if one.is_certified for key in one.setting.keys}
    stated = [] if printed is None else rows_of(printed.dropna(subset=["exposure"]))
    panels = [
        _panel(
            place, own, metric, exposures, certified, [r for r in stated if r["task"] == place.task]
        )
        for place, own in grouped(records, lambda r: Place(r.cell.task, r.cell.model)).items()
    ]
    return Plot("Memorisation of secrets", panels, _caption(records, metric, stated), columns=1)


def _exposures(record: Record, metric: str) -> dict[int, Estimate]:
    """Exposure by number of copies, from the first leak of each."""
    found: dict[int, Estimate] = {}
    for leak in record.leaks:
        if leak.metric == metric and leak.status == "ok" and leak.success is not None:
            found.setdefault(copies_of(leak.view), leak.success)
    return found


def _panel(
    place: Place,
    records: Sequence[Record],
    metric: str,
    exposures: Mapping[str, Mapping[int, Estimate]],
    certified: set[str],
    printed: Sequence[Row],
) -> Panel:
    """A row for each setting and a series for each number of copies.

    Args:
        exposures: exposure by key of the record and number of copies, also of records of other panels, so that all panels
            have the same markers.
    """
    names = {
        defense: varying_names([canonical_json(r.cell.defense.params) for r in own], but=CLAIMED)
        for defense, own in grouped(records, lambda record: record.cell.defense.name).items()
    }
    # Settings of training that distinguish a record from others of the same defense.
    trained = {
        offer: varying_names(record.cell.train.model_dump_json() for record in own)
        for offer, own in grouped(records, _offer).items()
    }
    rows = sorted(grouped(records, _row_of).values(), key=lambda own: _place(own[0], names))
    has_certified = any(record.key in certified for record in records)
    labels = []
    for own in rows:
        label = _row_label(own[0], names, trained[_offer(own[0])])
        if has_certified and not any(record.key in certified for record in own):
            label += "\n(not certified)"
        labels.append(label)
    counts = sorted({copies for own in exposures.values() for copies in own})
    planted = [copies for copies in counts if copies]
    series = []
    for copies in counts:
        sign = planted.index(copies) if copies else 0
        # Vertical offsets within a row, so that equal values are all visible.
        offset = 0.13 * (sign - (len(planted) - 1) / 2) if copies else 0.0
        points, hollow = list[Point](), list[Point]()
        for n, (own, label) in enumerate(zip(rows, labels, strict=True)):
            at = n + offset
            values = [e[copies] for record in own if copies in (e := exposures[record.key])]
            if values:
                points.append(Point.of(_mean(values), at, detail=label))
            stated = [row for row in printed if _is_of(row, own[0], copies)]
            hollow += [Point.of(float(row["exposure"]), at) for row in stated]
        name = planted_view(copies)
        look = STYLES[min(sign, len(STYLES) - 1)] if copies else (GREY, "|")
        if points or copies:
            series.append(Series(name, points, *look, size=5.0 if copies else 8))
        if hollow:
            series.append(Series(f"{name}, as printed", hollow, *look, hollow=True))
    least = min([0.0, *(p.x.low for own in series for p in own.points if p.x.low == p.x.low)])
    what = "exposure gained by training" if metric == GAINED else "exposure of the secret"
    chance = next(iter(exposures[records[0].key].values())).chance
    lines = max(label.count("\n") + 1 for label in labels)
    return Panel(
        place.title,
        Axis(f"← {what}, bits", least - 0.4, CEILING + 0.6),
        row_axis(labels, shared=False),
        series,
        [
            Reference("x", chance, "mean of unseen secrets"),
            Reference("x", CEILING, "likeliest of all 10⁶", line="solid"),
        ],
        remark="" if has_certified else "not certified",
        height=max(LEAST, LINE * lines + 0.08) * len(labels) + 0.7,
    )


def _mean(values: Sequence[Estimate]) -> Interval:
    """Mean over seeds with its interval, up to the largest exposure; of a single canary only the rank is known."""
    mean = mean_interval([one.value for one in values], Interval.of(values[0]))
    if mean.high - mean.low < CEILING:
        return Interval(mean.value, mean.low, min(mean.high, CEILING))
    return Interval(mean.value, mean.value, mean.value)


def _is_of(row: Row, record: Record, copies: int) -> bool:
    """True if a paper prints the number for such a setting."""
    defense, stated = record.cell.defense, json.loads(row["params"])
    same = row["defense"] == defense.name and stated.pop("copies") == copies > 0
    return same and all(defense.params.get(name) == value for name, value in stated.items())


def _row_of(record: Record) -> str:
    content = record.cell.model_dump(mode="json", exclude={"seed", "shadow"})
    return digest({**content, "plant": {**(content["plant"] or {}), "copies": ()}})


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


def _offer(record: Record) -> str:
    return digest([record.cell.cut, record.cell.defense.model_dump(mode="json")])


def _row_label(record: Record, names: Mapping[str, list[str]], trained: list[str]) -> str:
    defense = record.cell.defense
    words = format_parameters(canonical_json(defense.params), names[defense.name], unset=False)
    text = ", ".join(filter(None, [display_name(defense.name), words]))
    if trained:
        text += f"\n{format_parameters(record.cell.train.model_dump_json(), trained)}"
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
