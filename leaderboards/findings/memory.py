"""What training adds to the exposure of secrets, by how often they were told and by who holds them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Cell, digest
from leakboard.bench.scoring import GAINED, UNTUNED
from leakboard.bench.tasks import CEILING
from leakboard.leaderboards.findings.finding import Finding, keys_of, listed, measured
from leakboard.leaderboards.tables import (
    SETTING,
    Comparison,
    Row,
    average,
    count,
    group_digits,
    ranged,
    setting_named,
    setting_of,
)

BITS = f"of {CEILING:.1f} bits"


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each setting the bits gained at each number of copies; for each number the order of the settings.

    Each number of copies has a model of its own. A gain of what was planted is clear where its interval lies
    above 0, and the order is claimed only between groups whose intervals lie apart.
    """
    groups: dict[str, list[tuple[int, Comparison, dict[str, Row]]]] = {}
    for comparison in compared:
        copies = _copies(comparison)
        if copies is not None and (rows := _gained(comparison)):
            one = copies, comparison, rows
            groups.setdefault(_but_copies(comparison), []).append(one)
    for numbers in groups.values():
        numbers.sort(key=lambda one: one[0])
        # One setting may have a longer name where another one, trained in another way, stands beside it.
        settings: dict[str, list[tuple[str, Comparison, Row]]] = {}
        for _, comparison, rows in numbers:
            for name, row in rows.items():
                settings.setdefault(_made_by(comparison, row), []).append((name, comparison, row))
        for every in settings.values():
            if len(every) > 1:
                name = max((name for name, _, _ in every), key=len)
                yield _by_copies(name, [(comparison, row) for _, comparison, row in every])
        for copies, comparison, rows in numbers:
            for alike in _by_tuning(comparison, rows) if copies else ():
                if len(alike) > 1:
                    yield _order(comparison, alike)


def _copies(comparison: Comparison) -> int | None:
    """How often secrets were planted; None where nothing was, or differently often in one model."""
    plant = comparison.records[0].cell.plant
    return plant.copies[0] if plant is not None and len(plant.copies) == 1 else None


def _made_by(comparison: Comparison, row: Row) -> str:
    """Digits for a defense with its parameters, and how it was trained."""
    cell = _cell_of(comparison, row)
    return digest([cell.defense.model_dump(mode="json"), cell.train.model_dump(mode="json")])


def _by_tuning(comparison: Comparison, rows: dict[str, Row]) -> list[dict[str, Row]]:
    """The settings apart by what of the model is trained: adapters remember less than the whole of it."""
    found: dict[str, dict[str, Row]] = {}
    for name, row in rows.items():
        found.setdefault(_cell_of(comparison, row).train.tune, {})[name] = row
    return list(found.values())


def _cell_of(comparison: Comparison, row: Row) -> Cell:
    """The first of a setting's cells."""
    key = keys_of(comparison, row)[0]
    (cell,) = (record.cell for record in comparison.records if record.key == key)
    return cell


def _gained(comparison: Comparison) -> dict[str, Row]:
    """By its name the mean over seeds of each setting that was trained."""
    rows = comparison.rows
    rows = rows[(rows["metric"] == GAINED) & (rows["status"] == "ok")]
    newest = rows.groupby("key")["attack_version"].transform("max")
    # The first one is of what was planted; a model tells of secrets that were not as well.
    rows = rows[rows["attack_version"] == newest].drop_duplicates("key")
    rows = rows[rows["defense"] != UNTUNED]
    means = average(rows, SETTING).to_dict("records") if len(rows) else []
    known = comparison.lost
    return {
        setting_named(str(row["defense"]), str(known[setting_of(row)]["label"])): row
        for row in means
        if setting_of(row) in known
    }


def _but_copies(comparison: Comparison) -> str:
    """Eight digits for all that is compared but the number of copies."""
    cell = comparison.records[0].cell
    assert cell.plant is not None
    return group_digits(
        cell.model_copy(update={"plant": cell.plant.model_copy(update={"copies": ()})})
    )


def _by_copies(name: str, own: Sequence[tuple[Comparison, Row]]) -> Finding:
    told = listed([f"{_range(row)} {row['view']}" for _, row in own])
    # What was never planted gains by chance alone, now and then with its whole interval.
    clear = [str(row["view"]) for one, row in own if _copies(one) and row["success_low"] > 0]
    comparison, most = max(own, key=lambda one: one[1]["success"])
    return Finding(
        rule="memory",
        claim=f"On {comparison.task} with {comparison.model}, training under {name} adds to the exposure of "
        f"secrets, {BITS}, {told} ({_seeds([row for _, row in own])}): "
        f"{f'a gain is clear for those {listed(clear)}' if clear else 'no gain is shown'}.",
        settings=(name,),
        **measured(comparison, most),
        keys=tuple(key for each, row in own for key in keys_of(each, row)),
    )


def _order(comparison: Comparison, rows: dict[str, Row]) -> Finding:
    groups = _told_apart(sorted(rows.items(), key=lambda one: -one[1]["success"]))
    every = [one for group in groups for one in group]
    told = listed([f"{_range(row)} under {name}" for name, row in every])
    most = every[0][1]
    verdict = "no order is shown"
    if len(groups) > 1:
        verdict = " is more than ".join(listed([name for name, _ in group]) for group in groups)
        verdict = f"clear is that {verdict}; what stands together is not told apart"
    return Finding(
        rule="memory",
        claim=f"On {comparison.task} with {comparison.model}, training adds to the exposure of secrets "
        f"{most['view']}, {BITS}, {told} ({_seeds([row for _, row in every])}): {verdict}.",
        settings=tuple(name for name, _ in every),
        **measured(comparison, most),
        keys=tuple(key for _, row in every for key in keys_of(comparison, row)),
    )


def _told_apart(ordered: Sequence[tuple[str, Row]]) -> list[list[tuple[str, Row]]]:
    """Falling means in groups: every interval of a group lies above every interval of those behind it."""
    groups: list[list[tuple[str, Row]]] = []
    for i, one in enumerate(ordered):
        least = min((row["success_low"] for _, row in ordered[:i]), default=float("nan"))
        if least > max(row["success_high"] for _, row in ordered[i:]) or not groups:
            groups.append([])
        groups[-1].append(one)
    return groups


def _range(row: Row) -> str:
    return ranged(row["success"], row["success_low"], row["success_high"])


def _seeds(rows: Sequence[Row]) -> str:
    """Over how many seeds these are means, '3 or 5' where they differ; of the last one's secrets."""
    *fewer, most = sorted({int(row["n_seeds"]) for row in rows})
    told = "".join(f"{number} or " for number in fewer) + count(most, "seed")
    return f"means over {told} of {int(rows[-1]['n'])} secrets each"
