"""Breaks runs on purpose: kills, full and read-only disks, little memory, delayed folders, clocks set back. `tox run -e torture`.

Each trial runs a small suite in child processes that are forked from this one, which has loaded everything, and ends with
an undisturbed run. A trial holds if the records are then those of a run that nothing disturbed, nothing else lies in
their folder, and what stopped a run on the way was a sentence. What does not hold is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EIO, ENOSPC, EROFS
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "builders"))

import torch
from cells import make

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.exchange import Wire
from leakboard.bench.records import Store
from leakboard.bench.running.runner import Runner
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

HELD, STOPPED = 0, 3
"""Exit codes of a child: the run ended, or a sentence stopped it."""
LONGEST = [60.0]
"""Seconds after which a run counts as hanging; more if an undisturbed run is slow."""
SWEPT = {".locks"}
DOCUMENT = Path(__file__).parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: tox run -e torture -- --write -->", "<!-- end of figures -->"

Fault = Callable[[Path], None]


@dataclass
class Tally:
    """What came of the trials of one kind."""

    name: str
    tried: int = 0
    disturbed: int = 0
    lost: list[str] = field(default_factory=list)


@dataclass
class Ground:
    """The plan of all trials, and the records of its undisturbed run."""

    plan: object
    expected: dict[str, object]
    seconds: float

    @classmethod
    def make(cls) -> Ground:
        plan = make(NoDefense(), SAP(eta=50.0), SAP(eta=100.0), limit=24, seeds=(0, 1))
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            records = Runner(plan, Store(Path(folder))).run()
            seconds = time.monotonic() - start
        LONGEST[0] = max(LONGEST[0], 20 * seconds)
        return cls(plan, {record.key: record.outcome() for record in records}, seconds)

    def run(self, folder: Path) -> None:
        Runner(self.plan, Store(folder)).run()

    def start(self, folder: Path, fault: Fault | None = None) -> int:
        """Forks a child that runs the plan into a folder under a fault; returns its process id."""
        sys.stdout.flush()
        if pid := os.fork():
            return pid
        code = 1
        try:
            os.setpgid(0, 0)
            if fault:
                fault(folder)
            self.run(folder)
            code = HELD
        except LeakboardError:
            code = STOPPED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def disturb(self, tally: Tally, folder: Path, fault: Fault, told: str) -> int | str:
        """A run under a fault, and then `finish`; returns how the disturbed run ended."""
        end = ended(self.start(folder, fault))
        tally.disturbed += end != HELD
        if end not in (HELD, STOPPED):
            tally.lost.append(f"{told}: the run ended with {end}")
        self.finish(tally, folder, told)
        return end

    def finish(self, tally: Tally, folder: Path, told: str) -> None:
        """An undisturbed run at the end of a trial, and the comparison."""
        tally.tried += 1
        code = ended(self.start(folder))
        store = Store(folder)
        found = {record.key: record.outcome() for record in store.read_all()}
        rest = {p.name for p in folder.iterdir()} - SWEPT - {f"{key}.json" for key in self.expected}
        if code != HELD:
            tally.lost.append(f"{told}: the last run ended with {code}")
        elif found != self.expected or store.problems:
            tally.lost.append(f"{told}: the records differ; {store.problems}")
        elif rest:
            tally.lost.append(f"{told}: left behind {sorted(rest)[:3]}")


def ended(pid: int) -> int | str:
    """Exit code of a child, the name of its signal, or 'hung'; it is killed then."""
    until = time.monotonic() + LONGEST[0]
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return signal.Signals(os.WTERMSIG(status)).name
            return os.WEXITSTATUS(status)
        time.sleep(0.005)
    kill(pid)
    return "hung"


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def kills(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """Two workers of one folder, killed at random moments and replaced, n kills in all."""
    while tally.disturbed < n:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for _ in range(min(8, n - tally.disturbed)):
                workers = [ground.start(folder) for _ in range(2)]
                time.sleep(rng.uniform(0, ground.seconds / 3))
                for worker in workers[: rng.choice((1, 2))]:
                    kill(worker)
                    tally.disturbed += 1
                for worker in workers:
                    with suppress(ChildProcessError):
                        ended(worker)
            ground.finish(tally, folder, "kills")


def failing(number: int, code: int) -> Fault:
    """The number-th change of a file in the folder fails with an error of the system; so do all later ones."""
    changes = {"os.rename", "os.remove", "os.mkdir"}

    def install(folder: Path) -> None:
        seen, inside = [0], os.path.realpath(folder)

        def hook(name: str, args: tuple[object, ...]) -> None:
            writing = (
                name == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
            )
            if not (name in changes or writing):
                return
            if isinstance(args[0], str | bytes | os.PathLike) and os.path.realpath(
                os.fsdecode(args[0])
            ).startswith(inside):
                seen[0] += 1
                if seen[0] >= number:
                    raise OSError(code, os.strerror(code))

        sys.addaudithook(hook)

    return install


def disks(code: int) -> Callable[[Ground, Tally, random.Random, int], None]:
    """A disk that fails from the first, second, … change of a file on, until a run needs fewer."""

    def trial(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
        for number in range(1, n + 1):
            with tempfile.TemporaryDirectory() as name:
                end = ground.disturb(tally, Path(name), failing(number, code), f"change {number}")
                if end == HELD:
                    return

    return trial


def unflushed(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """fsync fails at random, as on a disk that is about to die."""
    for number in range(n):
        seed = rng.random()

        def fault(folder: Path, seed: float = seed) -> None:
            mine, real = random.Random(seed), os.fsync

            def fsync(descriptor: int) -> None:
                if mine.random() < 0.3:
                    raise OSError(EIO, os.strerror(EIO))
                real(descriptor)

            os.fsync = fsync

        with tempfile.TemporaryDirectory() as name:
            ground.disturb(tally, Path(name), fault, f"fsync {number}")


def small_files(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """No file may be longer than a random number of bytes: a disk that fills within a record."""
    import resource

    for _ in range(n):
        most = rng.randrange(20_000)

        def fault(folder: Path, most: int = most) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        with tempfile.TemporaryDirectory() as name:
            ground.disturb(tally, Path(name), fault, f"{most} bytes")


def no_memory(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """Memory runs out in a worker when it sends a message, at random; the next run tries these cells again."""
    for number in range(n):
        seed = rng.random()

        def fault(folder: Path, seed: float = seed) -> None:
            mine, real = random.Random(seed), Wire.send

            def send(*args: object, **kwargs: object) -> object:
                if mine.random() < 0.03:
                    raise MemoryError
                return real(*args, **kwargs)

            Wire.send = send

        with tempfile.TemporaryDirectory() as name:
            end = ended(ground.start(Path(name), fault))
            found = Store(Path(name)).read_all()
            tally.disturbed += any(record.status == "out-of-memory" for record in found)
            if end != HELD:
                tally.lost.append(f"memory {number}: the run ended with {end}")
            ground.finish(tally, Path(name), f"memory {number}")


def two_hosts(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """Two runs on one folder, each of which sees new files of the other only after a delay."""

    def fault(folder: Path) -> None:
        real = os.stat

        def stat(path: object, *args: object, **kwargs: object) -> os.stat_result:
            found = real(path, *args, **kwargs)
            if str(path).endswith(".json") and time.time() - found.st_mtime < 0.2:
                raise FileNotFoundError(2, "not visible yet", str(path))
            return found

        os.stat = stat

    for _ in range(n):
        with tempfile.TemporaryDirectory() as name:
            hosts = [ground.start(Path(name), fault) for _ in range(2)]
            for end in map(ended, hosts):
                tally.disturbed += 1
                if end not in (HELD, STOPPED):
                    tally.lost.append(f"a host ended with {end}")
            ground.finish(tally, Path(name), "two hosts")


def clocks(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """The clock is set back by up to a day between the runs of two halves."""
    for _ in range(n):
        back = rng.uniform(60, 86_400)

        def fault(folder: Path, back: float = back) -> None:
            real = time.time
            time.time = lambda: real() - back

        with tempfile.TemporaryDirectory() as name:
            first = ground.start(Path(name))
            time.sleep(rng.uniform(0, ground.seconds))
            kill(first)
            for path in Path(name).glob("*.json"):
                os.utime(path, (time.time() + back,) * 2)
            end = ended(ground.start(Path(name), fault))
            tally.disturbed += 1
            if end != HELD:
                tally.lost.append(f"{back:.0f} s: the run ended with {end}")
            ground.finish(tally, Path(name), f"{back:.0f} s")


def vanishing(ground: Ground, tally: Tally, rng: random.Random, n: int) -> None:
    """The folder is deleted during the run."""
    for _ in range(n):
        name = tempfile.mkdtemp()
        run = ground.start(Path(name))
        time.sleep(rng.uniform(0, ground.seconds))
        shutil.rmtree(name, ignore_errors=True)
        end = ended(run)
        tally.disturbed += 1
        if end not in (HELD, STOPPED):
            tally.lost.append(f"the run ended with {end}")
        Path(name).mkdir(exist_ok=True)
        ground.finish(tally, Path(name), "vanished")
        shutil.rmtree(name, ignore_errors=True)


KINDS = {
    "a worker killed at a random moment": (kills, 100),
    "a disk that is full from the n-th change of a file on": (disks(ENOSPC), 60),
    "a folder that is read-only from the n-th change on": (disks(EROFS), 60),
    "a disk that fills within a record": (small_files, 20),
    "fsync fails at random": (unflushed, 20),
    "a worker that runs out of memory": (no_memory, 10),
    "two hosts with delayed sight of each other's files": (two_hosts, 10),
    "a clock that is set back": (clocks, 10),
    "the folder is deleted during the run": (vanishing, 10),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all random moments")
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each kind")
    parser.add_argument(
        "--write", action="store_true", help=f"put the figures into {DOCUMENT.name}"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"--seed {options.seed}")
    ground, rng, tallies = Ground.make(), random.Random(options.seed), []
    for name, (trial, number) in KINDS.items():
        tally = Tally(name)
        start = time.monotonic()
        trial(ground, tally, rng, max(1, round(options.share * number)))
        tallies.append(tally)
        print(f"{name}: {tally.disturbed} disturbed, {tally.tried} compared, {len(tally.lost)} lost, "
              f"{time.monotonic() - start:.0f} s")  # fmt: skip
        for what in tally.lost[:5]:
            print(f"  {what}")
    if options.write:
        write(tallies)
    return any(tally.lost for tally in tallies)


def write(tallies: list[Tally]) -> None:
    rows = [
        f"| {tally.name} | {tally.disturbed} | {tally.tried} | {len(tally.lost)} |"
        for tally in tallies
    ]
    table = ["| fault | runs disturbed | records compared | lost |", "|---|---|---|---|", *rows]
    text = DOCUMENT.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    DOCUMENT.write_text("\n".join([before + BEGIN, *table, END]) + after, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
