"""The picture of what one server saw: principal components at moments of training, by label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from leakboard.bench.contracts import LeakboardError, Projection, Record
from leakboard.leaderboards.figures.drawing import Asked
from leakboard.leaderboards.figures.label_leak import records_by_setting
from leakboard.leaderboards.figures.sheet import Sheet, save, styled
from leakboard.leaderboards.tables import RecordSet

CLASSES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Of labels in a scatter plot; after Okabe and Ito."""


def plot(found: RecordSet, out: Path, asked: Asked) -> list[Path]:
    """What was sent, coloured by label; of one seed."""
    return pca(found.records, out, found.name)


def pca(records: Sequence[Record], out: Path, name: str) -> list[Path]:
    """A picture for each task and setting, of its first seed, in the folder `out`.

    Raises:
        LeakboardError: no record holds projections.
    """
    shown = records_by_setting([record for record in records if record.projections])
    if not shown:
        raise LeakboardError(
            "nothing to plot: nothing was sent at moments of training, or the records are older "
            "than these pictures"
        )
    files = []
    for (task, setting), seeds in shown.items():
        stem = "-".join([name, "pca", task, *setting.replace(",", "").replace(" = ", "=").split()])
        files += _components(seeds[0], out / stem, f"{task}: {setting}")
    return files


def _components(record: Record, out: Path, title: str) -> list[Path]:
    """Principal components at moments of training, coloured by label: a row per channel and part."""
    found: dict[tuple[str, int, str], list[Projection]] = {}
    for one in record.projections:
        found.setdefault((one.channel.value, one.part, one.recipient), []).append(one)
    columns = max(map(len, found.values()))
    with styled():
        note = "First two principal components of what one server saw; colour is the label."
        sheet = Sheet(1.75 * columns + 0.5, 1.75 * len(found) + 0.3, title, note)
        panels = sheet.above.subplots(len(found), columns, squeeze=False)
        for row, ((channel, part, recipient), moments) in zip(panels, found.items(), strict=True):
            several = len({p for c, p, _ in found if c == channel}) > 1
            row[0].set_ylabel(f"{channel} {part + 1}" if several else channel)
            if len({r for *_, r in found}) > 1:
                row[0].set_ylabel(f"{row[0].get_ylabel()}\n{recipient}")
            for ax, one in zip(row, moments, strict=False):
                xy, truth = np.array(one.points), np.array(one.truth)
                colours = [CLASSES[label % len(CLASSES)] for label in truth]
                ax.scatter(*xy.T, s=5, c=colours, alpha=0.65, linewidths=0)
                ax.set(xticks=[], yticks=[])
                ax.set_title(f"step {one.step}", fontsize=7.5)
        return save(sheet.figure, out)
