"""The command `doctor`, which checks the installation and says how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from leakboard.bench.cli.app import app, console
from leakboard.bench.cli.output import Format, Quiet, print_json
from leakboard.bench.contracts import LeakboardError, plain

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

State = Literal["ok", "missing", "broken"]
STYLES: dict[State, str] = {"ok": "green", "missing": "yellow", "broken": "bold red"}
LEAST_DISK, LEAST_MEMORY = 1.0, 1.0
"""GiB below which a run is likely to fail."""
VARIABLES = (
    *(
        "LEAKBOARD_DATA",
        "LEAKBOARD_SECRET",
        "XDG_CACHE_HOME",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "TMPDIR",
    ),
    *("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MLFLOW_TRACKING_URI", "RAY_ADDRESS"),
)
"""Environment variables that change what a command does."""
SECRET = "LEAKBOARD_SECRET"
GIB = 2**30
JOINED_GROUPS = ("packages", "extra", "data")
"""Groups of which a terminal shows names only, unless something is broken."""


@dataclass(frozen=True)
class Check:
    """A thing that was checked.

    Attributes:
        state: `missing` is optional; `broken` must be repaired before anything runs.
        remedy: how to get or to repair it.
    """

    group: str
    name: str
    state: State
    detail: str
    remedy: str = ""


@app.command()
def doctor(form: Format = "table", quiet: Quiet = False) -> None:
    """Check the installation: packages, devices, disk, memory, models, data, cache and environment variables.

    Exits with code 1 if something is broken. With --quiet, shows only what is broken.

    Example: leakboard doctor
    """
    checks = [*examine()]
    broken = [one for one in checks if one.state == "broken"]
    if form == "json":
        print_json({"broken": len(broken), "checks": [asdict(one) for one in checks]})
    else:
        _print(broken if quiet else checks)
    if broken:
        raise typer.Exit(1)


def examine() -> Iterator[Check]:
    """All checks, in the order in which they are shown."""
    yield from packages()
    yield from devices()
    yield from space()
    yield from models()
    yield from data()
    yield from variables()


def packages() -> Iterator[Check]:
    """Versions of Python and of all packages, against the ranges that this version allows."""
    from packaging.requirements import Requirement

    try:
        about = importlib.metadata.metadata("leakboard")
        requires = [Requirement(each) for each in importlib.metadata.requires("leakboard") or ()]
    except importlib.metadata.PackageNotFoundError:
        yield Check(
            "packages",
            "leakboard",
            "broken",
            "not installed",
            "pip install -e '.[cpu,offline]'",
        )
        return
    yield Check("packages", "leakboard", "ok", about["Version"])
    found, wanted = ".".join(map(str, sys.version_info[:3])), about["Requires-Python"]
    if Requirement(f"python{wanted}").specifier.contains(found):
        yield Check("packages", "Python", "ok", f"{found} ({wanted})")
    else:
        yield Check(
            "packages", "Python", "broken", f"{found}, expected {wanted}", "install such a version"
        )
    for each in requires:
        extra = str(each.marker).rpartition("==")[2].strip(' "') if each.marker else ""
        if extra != "dev":
            yield _package(each.name, each.specifier, extra)


def _package(name: str, ranges: SpecifierSet, extra: str) -> Check:
    """A required package, or one of an extra."""
    where = f"extra {extra}" if extra else "packages"
    get = f"pip install 'leakboard[{extra}]'" if extra else f"pip install '{name}{ranges}'"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        state: State = "missing" if extra else "broken"
        return Check(where, name, state, f"not installed ({ranges})", get)
    if not ranges.contains(version, prereleases=True):
        return Check(
            where, name, "broken", f"{version}, expected {ranges}", f"pip install '{name}{ranges}'"
        )
    return Check(where, name, "ok", f"{version} ({ranges})")


def devices() -> Iterator[Check]:
    """Processors and GPUs that torch can use."""
    try:
        import torch
    except (ImportError, OSError) as error:  # a library of the GPU may be missing
        yield Check(
            "devices", "torch", "broken", plain(error, 200), "reinstall it: https://pytorch.org"
        )
        return
    cores = f"{os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads"
    yield Check("devices", "cpu", "ok", cores)
    for i in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(i)
        yield Check(
            "devices", f"cuda:{i}", "ok", f"{about.name}, {about.total_memory / GIB:.0f} GiB"
        )
    if torch.backends.mps.is_available():
        yield Check("devices", "mps", "ok", "Apple GPU")


def space() -> Iterator[Check]:
    """Memory, free disk, and the cache."""
    import psutil

    from leakboard.bench.backbones import cache_folder

    free = psutil.virtual_memory().available / GIB
    state: State = "ok" if free >= LEAST_MEMORY else "broken"
    yield Check(
        "space",
        "memory",
        state,
        f"{free:.1f} GiB free",
        "" if state == "ok" else "close other programs",
    )
    cache = cache_folder()
    for name, folder in (
        ("working folder", Path()),
        ("temporary files", Path(tempfile.gettempdir())),
        ("cache", cache),
    ):
        yield _folder(name, folder)


def _folder(name: str, folder: Path) -> Check:
    """Whether a folder, which need not exist, can be written, and how much room it has."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    size = (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if name == "cache"
        else 0
    )
    free = shutil.disk_usage(there).free / GIB
    detail = (
        f"{folder.absolute()}: {f'{size / 1e6:.0f} MB used, ' if size else ''}{free:.1f} GiB free"
    )
    if not os.access(there, os.W_OK):
        remedy = "set XDG_CACHE_HOME to another folder" if name == "cache" else "use another folder"
        return Check("space", name, "broken", f"{detail}, not writable", remedy)
    if free < LEAST_DISK:
        return Check("space", name, "broken", detail, "delete files, or use another disk")
    return Check("space", name, "ok", detail)


def models() -> Iterator[Check]:
    """Models that have a name, with their licences, and how to get the missing ones."""
    from leakboard.bench.backbones import EMBEDDED, LICENCES, PACKAGED, is_on_this_machine

    extras = {"minilm": "offline", "gemma": "gemma"}
    for name in EMBEDDED:
        if name.startswith("tiny-"):
            continue
        get = (
            f"leakboard model get {name}"
            if name in PACKAGED
            else f"pip install 'leakboard[{extras.get(name)}]'"
        )
        there = is_on_this_machine(name)
        yield Check(
            "models",
            name,
            "ok" if there else "missing",
            f"licence: {LICENCES[name]}",
            "" if there else get,
        )


def data() -> Iterator[Check]:
    """Datasets at hand, and where the others come from."""
    from leakboard.bench.tasks import CATALOGUE, GENERATED, data_folder

    try:
        folder = data_folder(None)
    except LeakboardError as error:
        yield Check(
            "data", "LEAKBOARD_DATA", "broken", str(error), "set it to a folder that exists"
        )
        return
    yield Check("data", ", ".join(GENERATED), "ok", "generated, nothing to fetch")
    for name, entry in CATALOGUE.items():
        if folder is not None and (folder / entry.folder).is_dir():
            yield Check("data", name, "ok", str(folder / entry.folder))
        elif entry.hub is not None:
            get = "downloaded from the hub at first use, after pip install 'leakboard[hub]'"
            yield Check("data", name, "missing", f"hub: {entry.hub.repo}", get)
        else:
            get = f"put it into the --data folder as {entry.folder}"
            yield Check("data", name, "missing", entry.origin or "not on the hub", get)


def variables() -> Iterator[Check]:
    """Environment variables that change what a command does."""
    for name in VARIABLES:
        value = os.environ.get(name)
        if value is None:
            continue
        if name == SECRET:
            yield _secret(value)
        else:
            yield Check("environment", name, "ok", plain(value, 200))


def _secret(value: str) -> Check:
    from leakboard.bench.running import user_secret

    try:
        user_secret()
    except LeakboardError as error:
        return Check("environment", SECRET, "broken", str(error), "set another one, or unset it")
    return Check("environment", SECRET, "ok", f"set, {len(value)} characters")


def _print(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    for group, rows in groupby(_joined(checks), lambda one: one.group):
        console.print(Text(group, "bold"))
        lines = Table.grid(padding=(0, 1))
        lines.add_column(width=9)
        lines.add_column(overflow="fold")
        for one in rows:
            about = Text(f"{one.name}: {one.detail}" if one.detail else one.name)
            if one.remedy:
                about.append(f"\n{one.remedy}", "dim")
            lines.add_row(Text(f"  {one.state}", STYLES[one.state]), about)
        console.print(lines)
    broken = sum(one.state == "broken" for one in checks)
    console.print(f"{broken} broken" if broken else "nothing is broken")


def _joined(checks: list[Check]) -> Iterator[Check]:
    """The checks, of packages and data one for all with the same state and remedy."""
    alike: dict[tuple[str, State, str], list[Check]] = {}
    for i, one in enumerate(checks):
        is_joined = one.group.startswith(JOINED_GROUPS) and one.state != "broken"
        alike.setdefault((one.group, one.state, one.remedy if is_joined else str(i)), []).append(
            one
        )
    for (group, state, _), own in alike.items():
        if len(own) == 1:
            yield own[0]
        else:
            yield Check(group, ", ".join(one.name for one in own), state, "", own[0].remedy)
