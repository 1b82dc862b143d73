"""Folders of models."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from hostile.values import TEXTS, dumped, flipped, own, spoil

CONFIG = [
    "transformers_weights", "attn_implementation", "auto_map", "quantization_config", "model_type",
    "num_hidden_layers", "vocab_size", "hidden_size", "max_position_embeddings", "torch_dtype", "dtype",
    "tie_word_embeddings", "architectures", "type_vocab_size", "num_attention_heads", "fusion_config",
]  # fmt: skip
TOKENISER = [
    "tokenizer_file", "vocab_file", "auto_map", "tokenizer_class", "chat_template", "pad_token",
]  # fmt: skip
INDEX = ["metadata", "weight_map"]


def drawn(seed: int, honest: Path, to: Path) -> Path:
    """The folder of a model."""
    rng = random.Random(f"model {seed}")
    folder = Path(shutil.copytree(honest, to))
    for _ in range(rng.choice([1, 1, 2])):
        rng.choice([_config, _config, _tokeniser, _weights, _weights, _index, _files, _files])(
            rng, folder
        )
    return folder


def _config(rng: random.Random, folder: Path) -> None:
    spoil(rng, folder / "config.json", CONFIG)


def _tokeniser(rng: random.Random, folder: Path) -> None:
    spoil(rng, folder / rng.choice(["tokenizer.json", "tokenizer_config.json"]), TOKENISER)


def _weights(rng: random.Random, folder: Path) -> None:
    path = folder / "model.safetensors"
    if not own(path):
        return
    try:
        tensors = load_file(path)
    except Exception:  # spoiled before
        return
    if not tensors:
        return
    name = rng.choice(sorted(tensors))
    match rng.randrange(7):
        case 0:
            raw = path.read_bytes()
            head = rng.choice([8, 200, 5000, len(raw)])
            path.write_bytes(flipped(rng, raw[:head]) + raw[head:])
            return
        case 1:
            path.write_bytes(
                rng.choice(
                    [b"", b"\xff" * 8, (2**60).to_bytes(8, "little"), b"\x02" + b"\0" * 7 + b"{}"]
                )
            )
            return
        case 2:
            del tensors[name]
        case 3:
            tensors[name] = tensors[name].astype(
                rng.choice([np.float64, np.float16, np.int64, np.bool_])
            )
        case 4:
            tensors[name] = np.full_like(tensors[name], rng.choice([np.nan, np.inf, 1e38]))
        case 5:
            tensors[name] = tensors[name][:1].copy()
        case _:
            tensors[rng.choice([t for t in TEXTS if t.isprintable()])] = np.zeros(
                (1, 2), np.float32
            )
    save_file(tensors, path)


def _index(rng: random.Random, folder: Path) -> None:
    path = folder / "model.safetensors"
    target = rng.choice(
        [
            "model-1.safetensors",
            "../x.safetensors",
            "weights.bin",
            "/etc/hostname",
            "config.json",
            *TEXTS,
        ]
    )
    index = folder / "model.safetensors.index.json"
    if index.is_symlink() or (index.exists() and not index.is_file()):
        return
    index.write_bytes(
        dumped({"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": target}})
    )
    if rng.random() < 0.7 and own(path):
        path.rename(folder / "model-1.safetensors")
    if rng.random() < 0.3:
        spoil(rng, index, INDEX)


def _files(rng: random.Random, folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    name = rng.choice([*names, "adapter_config.json", "adapter_model.safetensors", "vocab.txt", "merges.txt",
                       "special_tokens_map.json", "added_tokens.json", "spiece.model", "generation_config.json"])  # fmt: skip
    path = folder / name
    if path.is_dir() and not path.is_symlink():
        return
    path.unlink(missing_ok=True)
    match rng.randrange(6):
        case 0:
            path.symlink_to(rng.choice(["nowhere", name, "/dev/zero", "/etc", "../"]))
        case 1:
            os.mkfifo(path)
        case 2:
            path.mkdir()
        case 3:
            path.write_bytes(rng.choice([b"{}", b"[]", b"", b"\x80\x04.", b"[" * 100_000]))
        case _:
            pass
