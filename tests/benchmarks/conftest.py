"""Fixtures of the benchmarks, and the table of their figures: `tox run -e bench`.

Those marked `long` run only by name, with `-k` or `-m`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from benchmarking import Comparison, Figure, table
from processor_threads import take_all
from rich.console import Console

from leakboard.bench.backbones import load_backbone
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.tasks import Task, load_task

take_all()
FIGURES = pytest.StashKey[list[Figure]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.keyword or config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(config: pytest.Config) -> None:
    if config.stash[FIGURES]:
        title = f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}"
        Console().print(table(title, config.stash[FIGURES]))


@pytest.fixture
def comparison(benchmark, capsys, pytestconfig: pytest.Config) -> Iterator[Comparison]:
    """Each figure is printed when it is measured, too, so that an interrupted run leaves those before."""
    figures = pytestconfig.stash[FIGURES]
    earlier = len(figures)
    yield Comparison(benchmark, figures)
    with capsys.disabled():
        for figure in figures[earlier:]:
            print(f" {figure.name}: {figure.format(figure.value)}")


@pytest.fixture(scope="session")
def data() -> Path | None:
    """The folder of the real datasets, if the variable LEAKBOARD_DATA names it."""
    folder = os.environ.get("LEAKBOARD_DATA")
    return Path(folder) if folder else None


@pytest.fixture(scope="session")
def task(data) -> Task:
    """SST-2 where the real datasets are, or reviews."""
    return load_task("sst2" if data else "reviews", data)


@pytest.fixture(scope="session")
def minilm() -> Backbone:
    return load_backbone("minilm")
