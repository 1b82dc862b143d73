"""Folders with a tiny model, to be spoiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from leakboard.bench.backbones.folders import INDEX, WEIGHTS
from leakboard.bench.backbones.loading import load_backbone, tiny
from leakboard.bench.contracts.errors import LeakboardError


def tiny_folder(folder: Path, name: str = "tiny-bert") -> Path:
    """A folder with a tiny model in it, saved as transformers does it."""
    model, tokenizer = tiny.build(name)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def failure(name: object) -> str:
    """What is said about a model that is refused."""
    with pytest.raises(LeakboardError) as caught:
        load_backbone(str(name))
    return str(caught.value)


def weights_of(folder: Path, name: str = WEIGHTS) -> dict[str, Any]:
    return load_file(folder / name if name else folder)


def store(folder: Path, weights: dict[str, Any], name: str = WEIGHTS) -> None:
    save_file(weights, folder / name, metadata={"format": "pt"})


def index(folder: Path, places: dict[str, str]) -> None:
    """An index that says in which file each weight lies."""
    content = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / INDEX).write_text(json.dumps(content))


def cut_in_two(folder: Path) -> dict[str, str]:
    """Puts the weights into two files with an index, and returns where each of them lies."""
    weights = weights_of(folder)
    names = sorted(weights)
    files = {f"model-0000{i + 1}-of-00002.safetensors": names[i::2] for i in range(2)}
    for file, own in files.items():
        store(folder, {name: weights[name] for name in own}, file)
    (folder / WEIGHTS).unlink()
    places = {name: file for file, own in files.items() for name in own}
    index(folder, places)
    return places


def reconfigured(folder: Path, **changes: Any) -> None:
    """The configuration with some of its values changed."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
