"""Folders with small datasets in them."""

from __future__ import annotations

import pytest
from paths import DATA

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks.loading import load_task

needs_data = pytest.mark.skipif(
    not (DATA / "sst2").is_dir(), reason=f"needs the real datasets; there are none in {DATA}"
)


def rows_of(n, start=0):
    return [f"sentence number {i}\t{i % 2}" for i in range(start, start + n)]


def write(folder, split, rows, header="text\tlabel"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}.tsv"
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


def failure(data, spec="sst2", **kwargs):
    with pytest.raises(LeakboardError) as caught:
        load_task(spec, data, **kwargs)
    return str(caught.value)
