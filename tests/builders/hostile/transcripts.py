"""Folders of transcripts."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from hostile.values import dumped, flipped, spoil

WORDS = [
    "classes", "splits", "messages", "cut", "vocabulary", "labels", "train", "files", "dropped", "model",
]  # fmt: skip


def drawn(seed: int, honest: Path, to: Path) -> Path:
    """The folder of a transcript."""
    rng = random.Random(f"transcript {seed}")
    folder = Path(shutil.copytree(honest, to))
    path = folder / "manifest.json"
    (file,) = folder.glob("*.safetensors")
    if rng.random() < 0.4:
        tensors = load_file(file)
        name = rng.choice(sorted(tensors))
        values = tensors[name]
        match rng.randrange(8):
            case 0:
                tensors[name] = np.full_like(values, rng.choice([-1, 0, 2**31, 10**6]))
            case 1:
                kind = rng.choice([np.float64, np.float16, np.int32, np.uint64, np.bool_])
                with np.errstate(all="ignore"):
                    tensors[name] = values.astype(kind)
            case 2 if values.dtype == np.float32:
                with np.errstate(all="ignore"):
                    tensors[name] = values * np.float32(rng.choice([np.nan, np.inf, 1e38, 0]))
            case 3:
                tensors[name] = values[: rng.randrange(len(values))]
            case 4:
                tensors[name] = np.concatenate([values, values])
            case 5:
                tensors[name] = values[None]
            case 6:
                del tensors[name]
            case _:
                tensors[name] = np.full_like(
                    values, np.iinfo(np.int64).max // 4 if values.dtype == np.int64 else 0
                )
        save_file(tensors, file)
        told = json.loads(path.read_bytes())
        told["files"] = {file.name: file.stat().st_size}
        path.write_bytes(dumped(told))
    if rng.random() < 0.6:
        spoil(rng, path, WORDS)
    if rng.random() < 0.15:
        spoiled = rng.choice([path, file])
        spoiled.write_bytes(flipped(rng, spoiled.read_bytes()))
    if rng.random() < 0.1:
        spoiled = rng.choice([path, file])
        spoiled.unlink()
        if rng.random() < 0.5:
            spoiled.symlink_to(rng.choice(["nowhere", "/dev/zero", "/etc/hostname"]))
    return folder
