"""The figure of what a released model remembers: exposure of canaries under every defense."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from leakboard.bench.contracts import LeakboardError, Record, TrainSettings, digest
from leakboard.bench.defending import DETECTORS
from leakboard.bench.scoring import GAINED
from leakboard.bench.suites import format_settings
from leakboard.bench.tasks import CEILING, copies_of, planted_view
from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.legend import CHANCE, GREY
from leakboard.leaderboards.figures.sheet import Sheet, save, styled
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    SETTING,
    RecordSet,
    Row,
    average,
    counted,
    distinct,
    frame,
    mirrored,
    settings,
    standing,
    varying,
)

COPIES = ("o", "s", "D", "^", "v", "P")
"""Markers, from the fewest copies to the most."""
SHADES = ("#7fb8da", "#2f7fb8", "#0b3c66", "#061f36", "#061f36", "#061f36")
CLAIMED = "epsilon"
"""What the claim says of a setting, so that its name need not."""
LINE, LEAST = 0.145, 0.36
"""Inches for each line of a setting's name, and for a setting at least."""


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """Exposure of canaries under every defense, beside what the paper prints."""
    paper = found.suite.paper if found.suite else None
    theirs = mirrored(paper) if paper else None
    title = f"{found.name}: what the model remembers"
    return memory(found.records, out / f"{found.name}-memory", title, theirs)


def memory(
    records: Sequence[Record], out: Path, title: str, printed: pd.DataFrame | None = None
) -> list[Path]:
    """Draws the exposure of canaries in bits, a row for each setting and a sign for each number of copies.

    What training added to it, where the records say so, or the whole of it. Means over seeds with 95 %
    intervals; one canary of one seed has none. What was never planted shows what luck does. Models
    that differ in how often canaries were planted share a row.

    Args:
        printed: as `leakboard.leaderboards.tables.printed.printed` builds it; its exposures are drawn hollow in the rows
            of the settings that agree in all that they state.

    Raises:
        LeakboardError: no record holds an exposure.
    """
    printed = None if printed is None else printed.dropna(subset=["exposure"])
    rows = frame(records)
    rows = rows[rows["metric"].isin(["exposure", GAINED]) & (rows["status"] == "ok")]
    gained = _is_gain(rows)
    rows = rows[rows["metric"] == (GAINED if gained else "exposure")]
    if rows.empty:
        raise LeakboardError(
            "nothing to plot: no record holds an exposure; plant canaries (`plant: {canaries: …}`) and "
            "let canary-exposure loose on a model that is handed out"
        )
    claims = {record.key: record.claim for record in records}
    trained = _trained(records)
    rows = rows.drop_duplicates(["key", "view"])
    setups = rows["key"].map(_setups(records))
    rows = rows.assign(setup=setups, shared=setups, copies="")
    groups = list(rows.groupby(SETTING, sort=False, dropna=False))
    names = _names(rows)
    first = {setting: own.iloc[0].to_dict() for setting, own in groups}
    labels = {
        setting: _named(row, names, trained[row["key"]], claims[row["key"]])
        for setting, row in first.items()
    }
    groups.sort(key=lambda group: _place(first[group[0]], names))
    lines = max(text.count("\n") + 1 for text in labels.values())
    tasks = list(dict.fromkeys(zip(rows["task"], rows["model"], strict=True)))
    counts = sorted({copies_of(view) for view in rows["view"]})
    signs = {copies: place for place, copies in enumerate(c for c in counts if c)}
    tallest = max(sum((s[0], s[1]) == where for s, _ in groups) for where in tasks)
    with styled():
        height = max(LEAST, LINE * lines) * tallest * len(tasks) + 1.0
        sheet = Sheet(7.0, height, title, _note(rows, printed), 6)
        panels = sheet.above.subplots(len(tasks), 1, squeeze=False)[:, 0]
        drawn = set[int]()
        for ax, (task, model) in zip(panels, tasks, strict=True):
            ax.axvline(rows["chance"].iloc[0], label="mean of what was never seen", **CHANCE)
            least = 0.0
            ax.axvline(CEILING, color=GREY, linewidth=0.8, label="likeliest of all 10⁶")
            here = [(s, own) for s, own in groups if (s[0], s[1]) == (task, model)]
            for y, (setting, own) in enumerate(here):
                means = average(own, [*SETTING, "view"]).to_dict("records")
                told = [mean for mean in means if _is_shown(mean)]
                least = min([least, *(mean["success_low"] for mean in told)])
                for mean in sorted(told, key=lambda mean: -copies_of(str(mean["view"]))):
                    _sign(ax, y, mean, signs)
                drawn |= {copies_of(str(mean["view"])) for mean in told}
                _hollow(ax, y, first[setting], printed, signs)
                if not any(copies_of(str(mean["view"])) for mean in told):
                    place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}
                    ax.text(CEILING / 2, y, NOT_SHOWN, color=GREY, **place)
            ax.set_yticks(range(len(here)), [labels[setting] for setting, _ in here])
            ax.set_xticks([0, 5, 10, 15, 20])
            ax.set(ylim=(len(here) - 0.5, -0.5), xlim=(least - 0.4, CEILING + 0.6))
            what = "exposure gained by training" if gained else "exposure of the secret"
            ax.set_xlabel(f"← {what}, bits")
            ax.set_title(f"{task}, {model}", loc="left", fontweight="bold")
        for copies in sorted(drawn):
            panels[0].errorbar([nan], [nan], label=planted_view(copies), **_look(copies, signs))
        sheet.legend(panels[0])
        return save(sheet.figure, out)


def _setups(records: Sequence[Record]) -> dict[str, str]:
    """By key what decides the outcome besides the setting and the number of copies."""

    def rest(record: Record) -> str:
        told = record.cell.model_dump(mode="json", exclude={"seed", "shadow", "defense"})
        return digest({**told, "plant": {**(told["plant"] or {}), "copies": ()}})[:8]

    return {record.key: rest(record) for record in records}


def _is_gain(rows: pd.DataFrame) -> bool:
    return bool((rows["metric"] == GAINED).any())


def _is_shown(row: Row) -> bool:
    """Whether anything is said of it; what was never planted shows luck, and no protection."""
    return not copies_of(str(row["view"])) or standing(row) != NOT_SHOWN


def _sign(ax: Axes, y: float, row: Row, signs: Mapping[int, int]) -> None:
    copies, value = copies_of(str(row["view"])), row["success"]
    low, high = row["success_low"], min(CEILING, row["success_high"])
    if copies:
        y += _apart(copies, signs)
    told = high - low < CEILING  # of a single canary nothing is known but its rank
    reach = [[value - low], [high - value]] if told else None
    ax.errorbar([value], [y], xerr=reach, elinewidth=1.4, zorder=3, **_look(copies, signs))


def _look(copies: int, signs: Mapping[int, int]) -> dict[str, Any]:
    """The sign of what was planted so many times."""
    if not copies:
        return {"linestyle": "none", "color": GREY, "marker": "|", "markersize": 9}
    place = min(signs[copies], len(COPIES) - 1)
    sign = {"color": SHADES[place], "marker": COPIES[place], "markersize": 5.5}
    return {"linestyle": "none", **sign}


def _hollow(
    ax: Axes,
    y: int,
    row: Row,
    printed: pd.DataFrame | None,
    signs: Mapping[int, int],
) -> None:
    if printed is None:
        return
    own = json.loads(row["params"])
    for theirs in printed.to_dict("records"):
        stated = json.loads(theirs["params"])
        copies = stated.pop("copies")
        same = (theirs["task"], theirs["defense"]) == (row["task"], row["defense"])
        if same and copies in signs and all(own.get(k) == v for k, v in stated.items()):
            marker = COPIES[min(signs[copies], len(COPIES) - 1)]
            colour = SHADES[min(signs[copies], len(COPIES) - 1)]
            at = y + _apart(copies, signs)
            ax.plot([theirs["exposure"]], [at], marker, mfc="white", mec=colour, ms=5.5, zorder=4)


def _apart(copies: int, signs: Mapping[int, int]) -> float:
    """By how much a sign stands below the middle of its row, so that equal ones are all seen."""
    return 0.13 * (signs[copies] - (len(signs) - 1) / 2)


def _names(rows: pd.DataFrame) -> dict[str, list[str]]:
    """For each defense the parameters that vary, in the order of `rows`; ε aside, which the claim says."""
    return {
        str(defense): varying(own["params"], but=CLAIMED)
        for defense, own in rows.groupby("defense", sort=False)
    }


def _place(row: Row, names: Mapping[str, list[str]]) -> tuple[Any, ...]:
    """Where the row of a setting stands: by defense, then by its parameters, detectors as they mask more."""
    defense, params = str(row["defense"]), json.loads(row["params"])

    def rank(name: str) -> tuple[float, str]:
        value = params.get(name)
        if isinstance(value, int | float):
            return value, ""
        known = list(DETECTORS)
        return (known.index(value) if value in known else -1), str(value)

    told = [*reversed(names[defense]), CLAIMED]
    return list(names).index(defense), *map(rank, told)


def _trained(records: Sequence[Record]) -> dict[str, str]:
    """By key how a model was trained, in what tells it from others of the same task, model and defense."""
    peers: dict[str, list[Record]] = {}
    for record in records:
        cell = record.cell
        spec = cell.defense.model_dump(mode="json")
        peers.setdefault(digest([cell.task, cell.model, cell.cut, spec]), []).append(record)
    told = dict[str, str]()
    for own in peers.values():
        every = {record.key: record.cell.train.model_dump() for record in own}
        differ = [k for k in TrainSettings.model_fields if len({t[k] for t in every.values()}) > 1]
        told |= {
            key: format_settings({k: train[k] for k in differ}) for key, train in every.items()
        }
    return told


def _named(row: Row, names: Mapping[str, list[str]], trained: str, claim: Any) -> str:
    defense = str(row["defense"])
    chosen = settings(str(row["params"]), names[defense], unset=False)
    text = ", ".join(filter(None, [defense, chosen]))
    if trained:
        text += "\n" + trained.replace(" ", ", ").replace("_", " ")
    if claim is not None and "epsilon" in claim.parameters:
        text += f"\nclaims ε = {claim.parameters['epsilon']:.3g}"
    return "\n".join(fill(line, 44) for line in text.split("\n"))


def _note(rows: pd.DataFrame, printed: pd.DataFrame | None) -> str:
    text = (
        "Exposure: log2(10⁶) − log2(rank of the secret among all 10⁶); each bit halves the rank. "
        + ("Gained: less what it was under the public model. " if _is_gain(rows) else "")
        + "Means over "
        f"{counted(rows['seed'].nunique(), 'seed')} with 95 % intervals where there are several canaries; a claim ε is of "
        "single texts, and k copies of one have kε. masked, missed: whether the detector finds the canary. What an attack without a certificate does not clearly "
        "find is left out."
    )
    if printed is not None and len(printed):
        text += (
            f" Hollow: as printed by {distinct(printed['paper'])} for {distinct(printed['model'])}"
            + (", with nothing subtracted." if _is_gain(rows) else ".")
        )
    return text
