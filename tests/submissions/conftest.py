"""A folder in which nothing is left behind, and cells that were really run."""

from __future__ import annotations

from multiprocessing import get_context

import pytest
from sandboxed import enter_or_fail
from submitted import really_run

from leakboard.bench.submissions import cell_process, rerunning


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("submissions")


@pytest.fixture(scope="package")
def has_sandbox(tmp_path_factory):
    """Whether this system has user namespaces."""
    context = get_context("forkserver")
    process = context.Process(target=enter_or_fail, args=(tmp_path_factory.mktemp("inside"),))
    process.start()
    process.join()
    return process.exitcode == 0


@pytest.fixture(scope="package")
def real(tmp_path_factory):
    """Two cells of a tiny model, without a defense and with one, under all standard attacks."""
    return really_run(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="package")
def done():
    """By key, the cells that were run again in this process."""
    return {}


@pytest.fixture
def at_once(monkeypatch, done):
    """Cells are run again in this process, each once, which is quicker; returns the orders that came."""
    orders = []

    def run(order, minutes, reporter):
        orders.append(order)
        if order.key not in done:
            done[order.key] = cell_process.run_order(order, reporter)
        return done[order.key]

    monkeypatch.setattr(rerunning, "run_in_subprocess", run)
    return orders
