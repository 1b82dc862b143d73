"""Provenance of records: machine, device, package versions and commit."""

from __future__ import annotations

import datetime
import platform
import resource
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from leakboard.bench import __version__
from leakboard.bench.contracts import Provenance, TunedOn

PACKAGES = ("torch", "transformers", "peft", "numpy", "faiss-cpu", "scipy")
"""Packages whose version may change results."""


def provenance(
    device: str,
    workers: int = 1,
    secret: str | None = None,
    trials: tuple[str, ...] = (),
    tuned_on: TunedOn | None = None,
    code: Mapping[str, str] | None = None,
) -> Provenance:
    """Describes this process, its packages and its device, now.

    Args:
        workers: how many cells run at once on the machine.
        secret: fingerprint of what the customer's secrets are drawn from.
        trials: keys of those by which the settings of training were chosen.
        tuned_on: texts of these trials.
        code: digest of the file of each method by its name.
    """
    on_gpu = device.startswith("cuda")
    commit, dirty = _commit()
    return Provenance(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        leakboard=__version__,
        commit=commit,
        dirty=dirty,
        python=platform.python_version(),
        packages=_packages(),
        device=torch.cuda.get_device_name(device) if on_gpu else device.split(":")[0],
        threads=torch.get_num_threads(),
        workers=workers,
        platform=f"{platform.system()} {platform.machine()}",
        trials=trials,
        tuned_on=tuned_on,
        secret=secret,
        code=dict(code or {}),
    )


def peak_megabytes(device: str) -> float:
    """Peak memory of a GPU, or of this process since its start, in megabytes."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device) / 1e6
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


@cache
def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def _commit() -> tuple[str, bool | None]:
    """The commit of the source tree, and whether it has uncommitted changes; unknown when installed."""
    file = Path(__file__).resolve()  # git follows no link
    try:
        git = ["git", "-C", str(file.parents[2])]
        tracked = subprocess.run(
            [*git, "ls-files", "--error-unmatch", str(file)], capture_output=True, check=False
        )
        if tracked.returncode:
            return "", None
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=True)
        status = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "", None
    return head.stdout.decode().strip(), bool(status.stdout.strip())
