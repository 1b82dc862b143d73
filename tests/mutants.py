"""Breaks one line at a time, as `tests/mutants.toml` lists them, and asks whether the tests notice.

    python tests/mutants.py                         # all, two at a time; what was killed already stays so
    python tests/mutants.py --only spectral kmeans  # those with one of these in their id or file

No file is changed: the module is broken as it is loaded, in a process of its own. First the tests that are
named must pass as they are. The exit code is 0 where every mutant was killed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.machinery
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import rich.progress
from rich.console import Console
from rich.table import Table

TESTS = Path(__file__).parent
ROOT = TESTS.parent
sys.path = [str(TESTS / "builders"), *(path for path in sys.path if Path(path) != TESTS)]

from mutant_list import HOUSE, Mutant, mutants, outdated  # noqa: E402

KEPT = ROOT / "build" / "mutants.json"
"""What was killed, so that a run that was interrupted goes on where it stopped."""
LIMIT = 180.0
"""Seconds of the processor after which a mutant has hung: others may be at work on the machine."""
WAITED = 1800.0
"""Seconds by the clock after which one has hung that does nothing."""
HEAVY = [
    *("torch", "torch.nn.utils", "transformers", "peft", "opacus", "faiss", "xgboost"),
    *("transformers.models.bert.modeling_bert", "transformers.models.gpt2.modeling_gpt2"),
    *("transformers.models.auto", "opacus.accountants", "opacus.grad_sample"),
    *("sklearn.linear_model", "sklearn.cluster", "sklearn.neural_network", "scipy.stats"),
    *("pandas", "pyarrow", "pydantic", "matplotlib.figure", "typer", "lazy_loader"),
    *("pytest", "hypothesis", "generated"),
]
"""Loaded once, before the processes part: that takes longer than most of the tests."""
PASSED, FAILED = 10, 11
"""Exit codes of the processes; any other says that the tests did not run to their end."""


@dataclass
class Trial:
    """Tests that are run in one process, with one line broken or none.

    Attributes:
        outcome: killed, survived, stale, hung or unclear; of unbroken ones sound or failing.
        told: the end of what pytest said.
    """

    tests: tuple[str, ...]
    mutant: Mutant | None = None
    outcome: str = ""
    seconds: float = 0.0
    told: str = ""
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = hashlib.sha256(repr((self.mutant, self.tests)).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        return self.mutant.id if self.mutant else f"unbroken: {self.tests[0].split('::')[0]}"


class Heard:
    """Notes whether any test ran to its end."""

    ran = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ran = self.ran or (report.when == "call" and not report.skipped)


def run(tests: Sequence[str], mutant: Mutant | None, out: str) -> None:
    """What a process of its own does; it ends with the exit code of pytest."""
    with open(out, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # of what stands in the environment besides
    sys.path.insert(0, str(ROOT))
    if mutant is not None:
        _break(ROOT / mutant.file, mutant.text())
    if mutant is None or not mutant.file.startswith("bench/tasks/"):
        import generated

        generated.install()
    import pytest

    heard = Heard()
    options = ["-q", "-p", "no:cacheprovider", *(["-x"] if mutant else [])]
    code = pytest.main([*options, *(f"tests/{test}" for test in tests)], plugins=[heard])
    sys.stdout.flush()
    os._exit({0: PASSED, 1: FAILED}.get(int(code), 1) if heard.ran else 1)


def _break(file: Path, text: str) -> None:
    """From now on the module of a file is that of another text."""
    file, loader = file.resolve(), importlib.machinery.SourceFileLoader
    plain = loader.get_code

    def get_code(self: Any, name: str) -> Any:
        if Path(self.path).resolve() == file:
            return compile(text, self.path, "exec", dont_inherit=True)
        return plain(self, name)

    loader.get_code = get_code  # type: ignore[method-assign]


def tried(trials: Sequence[Trial], jobs: int) -> Iterator[Trial]:
    """Runs them, some at a time, and returns each when it has ended."""
    # From which the other processes part.
    os.environ |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS / 'builders'}", "OMP_NUM_THREADS": "1"}
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    left, running = list(reversed(trials)), {}
    with tempfile.TemporaryDirectory() as folder:
        while left or running:
            while left and len(running) < jobs:
                trial = left.pop()
                out = os.path.join(folder, trial.key)
                process = context.Process(target=run, args=(trial.tests, trial.mutant, out))
                process.start()
                running[process.sentinel] = process, trial, out, time.monotonic()
            wait(list(running), timeout=1.0)
            for sentinel, (process, trial, out, started) in list(running.items()):
                trial.seconds = time.monotonic() - started
                late = trial.seconds > LIMIT and (spent(process) > LIMIT or trial.seconds > WAITED)
                if hung := late and process.is_alive():
                    process.kill()
                    process.join()
                if process.is_alive():
                    continue
                with suppress(OSError):
                    trial.told = Path(out).read_text("utf-8", "replace")[-3000:]
                trial.outcome = "hung" if hung else _outcome(trial, process.exitcode)
                del running[sentinel]
                yield trial


def spent(process: BaseProcess) -> float:
    """Seconds of the processor that a process and its ended children took; 0 once it has ended."""
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _outcome(trial: Trial, code: int | None) -> str:
    if trial.mutant is None:
        return "sound" if code == PASSED else "failing"
    return {PASSED: "survived", FAILED: "killed"}.get(code, "unclear")


def state() -> str:
    """Changes with any line of code or test."""
    digest = hashlib.sha256()
    for folder in (*HOUSE, "leakboard", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".pyi", ".yaml", ".txt"}:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def known(now: str) -> dict[str, float]:
    """Seconds of what came out well, by key, where nothing has changed since."""
    try:
        kept = json.loads(KEPT.read_text("utf-8"))
        return kept["seconds"] if kept["state"] == now else {}
    except (OSError, ValueError, KeyError):
        return {}


def main(console: Console) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[""], help="parts of an id or of a file")
    parser.add_argument("--fresh", action="store_true", help="forget what was killed already")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    asked = parser.parse_args()
    words = [word.lower() for word in asked.only]
    chosen = [m for m in mutants() if any(word in f"{m.id} {m.file}".lower() for word in words)]
    trials = [Trial(m.tests, m) for m in chosen]
    for trial in trials:
        if trial.mutant and (why := outdated(trial.mutant)):
            trial.outcome, trial.told = "stale", why
    by_file: dict[str, dict[str, None]] = {}
    for trial in trials:
        for test in trial.tests if not trial.outcome else ():
            by_file.setdefault(test.split("::")[0], {})[test] = None
    unbroken = [Trial(tuple(tests)) for tests in by_file.values()]
    now = state()
    done = {} if asked.fresh else known(now)
    for trial in (*unbroken, *trials):
        if trial.key in done and not trial.outcome:
            trial.outcome = "killed" if trial.mutant else "sound"
            trial.seconds = done[trial.key]
    started = time.monotonic()
    columns = (*rich.progress.Progress.get_default_columns(), rich.progress.MofNCompleteColumn())
    with rich.progress.Progress(*columns, console=console) as progress:
        for name, some in (("tests as they are", unbroken), ("mutants", trials)):
            left = [trial for trial in some if not trial.outcome]
            task = progress.add_task(name, total=len(some), completed=len(some) - len(left))
            for trial in tried(left, asked.jobs):
                progress.advance(task)
                if trial.outcome in {"killed", "sound"}:
                    done[trial.key] = round(trial.seconds, 2)
                    KEPT.parent.mkdir(exist_ok=True)
                    KEPT.write_text(json.dumps({"state": now, "seconds": done}), "utf-8")
                else:
                    progress.console.print(f"[bold]{trial.outcome}[/]: {trial.title}")
    return reported(console, unbroken, trials, time.monotonic() - started)


def reported(
    console: Console, unbroken: Sequence[Trial], trials: Sequence[Trial], seconds: float
) -> int:
    """The summary, and the exit code."""
    table = Table("file", "mutants", "killed", "seconds", box=None)
    files: dict[str, list[Trial]] = {}
    for trial in trials:
        assert trial.mutant is not None
        files.setdefault(trial.mutant.file, []).append(trial)
    for file, own in files.items():
        killed = sum(trial.outcome == "killed" for trial in own)
        took = sum(trial.seconds for trial in own)
        table.add_row(file, f"{len(own)}", f"{killed}", f"{took:.0f}")
    console.print(table)
    bad = [trial for trial in (*unbroken, *trials) if trial.outcome not in {"killed", "sound"}]
    for trial in bad:
        console.rule(f"{trial.outcome}: {trial.title}")
        if trial.mutant:
            console.print(
                trial.mutant.file, trial.mutant.broken, *trial.tests, sep="\n", markup=False
            )
        console.print(trial.told, markup=False, highlight=False)
    killed = sum(trial.outcome == "killed" for trial in trials)
    console.print(f"{killed} of {len(trials)} mutants killed, in {seconds:.0f} s")
    return bool(bad) or not trials


if __name__ == "__main__":
    sys.exit(main(Console()))
