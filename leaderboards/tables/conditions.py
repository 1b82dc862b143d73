"""Conditions: the data, the training and the number of seeds that comparable records share, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakboard.bench.contracts import Plant, Record, grouped
from leakboard.bench.records import group_digits
from leakboard.bench.scoring import UNTUNED
from leakboard.bench.tasks import planted_view
from leakboard.leaderboards.tables.defenses import describe_limit
from leakboard.leaderboards.tables.intervals import count


def group_records(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Comparable records by their common digits, sorted by these."""
    return dict(sorted(grouped(records, lambda record: group_digits(record.cell)).items()))


def describe_groups(groups: Mapping[str, Sequence[Record]]) -> dict[str, str]:
    """Data, training and number of seeds of each group of `group_records`, in words.

    Groups with equal words get digits, of the data if these differ, else of the setup.
    """
    words = {digits: _setup(own) for digits, own in groups.items()}
    cells = {digits: own[0].cell for digits, own in groups.items()}
    peers = grouped(groups, lambda digits: (cells[digits].task, cells[digits].model, words[digits]))
    found = dict[str, str]()
    for same in peers.values():
        data = {digits: cells[digits].data_hash[:8] for digits in same}
        by_data = len(set(data.values())) == len(same)
        for digits in same:
            suffix = f", data {data[digits]}" if by_data else f", setup {digits}"
            found[digits] = words[digits] + suffix * (len(same) > 1)
    return found


def _setup(records: Sequence[Record]) -> str:
    cell = records[0].cell
    cells = [record.cell for record in records]
    alike = grouped(cells, lambda own: (own.cut, own.defense.model_dump_json(), own.train))
    seeds = [len({own.seed for own in of_setting}) for of_setting in alike.values()]
    fewest, most = min(seeds), max(seeds)
    words = [describe_limit(cell.limit)]
    words += [_coins(cell.plant)] if cell.plant and cell.plant.audit else []
    if cell.plant and cell.plant.canaries:
        # Old records have several numbers of copies at once.
        copies = cell.plant.copies
        words += [f"canaries {planted_view(copies[0]) if len(copies) == 1 else 'planted'}"]
    trained = {own.train for own in cells if own.defense.name != UNTUNED}
    if len(trained) > 1:
        words += ["training differs between settings"]
    else:
        words += ["all weights"] if cell.train.tune == "full" else []
        words += [count(cell.train.epochs, "epoch")]
    words += [cell.train.precision] if cell.train.precision != "float32" else []
    words += [f"{fewest} to " * (fewest < most) + count(most, "seed")]
    return ", ".join(words)


def _coins(plant: Plant) -> str:
    if plant.candidates == "strange":
        return f"{plant.audit} strange texts beside them by a coin"
    if plant.per_author is None:
        return f"{plant.audit} of them by a coin"
    return f"at most {plant.per_author} of an author, {plant.audit} authors by a coin"
