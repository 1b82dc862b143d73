"""How the project is built: by setuptools, with the published records packed into wheels.

An editable installation needs neither the records, which lie in the checkout, nor pyarrow.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403
from setuptools.command.build_py import build_py

RECORDS = Path("results/published")
PACKED = Path("leakboard/bench/records/published.parquet")


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What a wheel needs to be built, beyond what any build does."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), "pyarrow>=17"]


class BuildPy(build_py):
    """Copies the sources, and packs the published records beside them."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # What an earlier build left behind would be in the wheel, too.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        folders = [path for path in RECORDS.glob("*") if any(path.glob("*.json"))]
        if folders:
            _packing().pack(folders, Path(self.build_lib) / PACKED)


def _packing() -> Any:
    """The module that packs, by its path: none of the project's dependencies are here."""
    spec = importlib.util.spec_from_file_location("parquet", "leakboard/bench/records/parquet.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
