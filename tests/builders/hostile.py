"""What strangers may send, drawn by a seed: suites, submissions, folders of models, transcripts.

Each is an honest one of which something was changed. The same seed gives the same case.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from submitted import manifest, members, resealed, zipped

from bench.contracts.cell import Cell

TEXTS = [
    "", " ", "\0", "a\0b", "\x1b[2J", "\x07", "[/red]", "[bold]x[/]", "\u202egnp.exe", "\ud800", "\uffff",
    "../../x", "/etc/hostname", "~nouser/x", "~", "C:\\x", "x" * 300, "x" * 5000, "a/" * 2000, "nan", "1e999",
    "!!python/object/apply:os.system [ls]", "{{7*7}}", "${jndi:ldap://x}", "%s%n", "None", "true", "null",
    "<script>alert(1)</script>", "9" * 6000, "é", "漢字", "👩‍💻", "a\nb", "\t", "*", "&a [*a]", "- - -",
]  # fmt: skip
NUMBERS = [
    0, -1, 1, 2, 3, 10**6, 10**9, 10**12, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.5, -0.0,
    1e-300, 1e308, float("nan"), float("inf"), float("-inf"), True, False,
]  # fmt: skip
DEEP: list[Any] = []
for _ in range(40):
    DEEP = [DEEP]


def strange(rng: random.Random) -> Any:
    """A value that hardly belongs anywhere."""
    return rng.choice(
        [
            lambda: rng.choice(TEXTS),
            lambda: rng.choice(NUMBERS),
            lambda: None,
            list,
            dict,
            lambda: DEEP,
            lambda: [rng.choice(NUMBERS) for _ in range(rng.randrange(5))],
            lambda: {rng.choice(TEXTS): rng.choice(NUMBERS)},
            lambda: [rng.choice(TEXTS)] * rng.randrange(1, 300),
            lambda: list(range(rng.choice([10, 1000, 20_000]))),
        ]
    )()


def changed(rng: random.Random, value: Any, times: int = 1) -> Any:
    """A JSON value with something in it replaced, added, doubled or taken away."""
    value = json.loads(json.dumps(value))
    for _ in range(times):
        at, way = value, []
        while isinstance(at, dict | list) and at and (not way or rng.random() < 0.8):
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            way.append((at, key))
            at = at[key]
        if not way:
            return strange(rng)
        inside, key = way[-1]
        match rng.randrange(4):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, dict):
                inside[str(rng.choice(TEXTS))] = strange(rng)
            case 2 if isinstance(inside, list):
                inside.insert(key, inside[key])
            case _:
                inside[key] = strange(rng)
    return value


def flipped(rng: random.Random, raw: bytes) -> bytes:
    """Some bytes changed, or the end cut off."""
    out = bytearray(raw)
    for _ in range(rng.randrange(1, 9)):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    if rng.random() < 0.3:
        del out[rng.randrange(len(out) + 1) :]
    return bytes(out)


def dumped(value: Any) -> bytes:
    """As JSON, whatever numbers and characters are in it."""
    return json.dumps(value).encode("utf-8", "replace")


# Suites

SUITE = {
    "name": "mine",
    "description": "what it is",
    "task": ["reviews", {"name": "own", "path": {"train": "a.tsv", "dev": "b.tsv"}, "attributes": ["g"]}],
    "model": ["tiny-bert", "m"],
    "cut": [0, 1],
    "seeds": [0, 1],
    "limit": 100,
    "train": {"epochs": 1, "learning_rate": 1e-3, "tune": "lora"},
    "record": {"examples": 50},
    "plant": {"canaries": "My ID is {digits}", "copies": [1, 10], "audit": 10},
    "defenses": ["none", {"sap": {"eta": ["none", 75, 50], "bottom": "frozen"}}, {"p3eft": {"weight": [0.1, 1]}}],
    "attacks": ["all", {"aia-mlp": {"labelled": [0.1, 0.5]}}],
    "paper": {"paper": "SAP", "artefact": ["Table 3"], "task": {"reviews": "x"}},
}  # fmt: skip
FRAGMENTS = [
    "&a [1, 2]", "*a", "!!python/object:os.system {}", "!!binary aGk=", "!!set {a, b}", "? [a]\n: b", "<<: {a: b}",
    "[" * 100_000, "{a: " * 5_000, "- " * 5_000, "\n---\n", "%YAML 1.2\n---\n", "\t", '"\\UFFFFFFFF"', '"\\uD800"',
    '"\\0"', "|\n  a\n  b", "0x10", "1_000", "1:30", "=", "~", "''", "9" * 6000, "a: b: c", "#", "\x85", "\ufeff",
    "&a [&b [*a, *b], *a]",
    *("\n".join([f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 10) if i else '1, 2'}]" for i in range(n)]) for n in (3, 7)),
]  # fmt: skip


def suite(seed: int) -> bytes:
    """A suite file."""
    rng = random.Random(f"suite {seed}")
    kept = {
        key: value
        for key, value in SUITE.items()
        if key in ("name", "task", "defenses") or rng.random() < 0.5
    }
    kind = rng.randrange(5)
    if kind == 0:  # a grid or a list that is far too long
        many = list(range(1, rng.choice([50, 500, 3000])))
        kept["defenses"] = ["none", {"sap": {"eta": many, "bottom_learning_rate": many}}][
            rng.randrange(2) :
        ]
        kept["seeds"] = many
    else:
        kept = changed(rng, kept, rng.choice([0, 1, 1, 2, 5]))
    text = json.dumps(kept, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
    for _ in range(rng.choice([0, 0, 1, 2])):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(FRAGMENTS) + text[at:]
    raw = text.encode("utf-8", "surrogatepass")
    return flipped(rng, raw) if rng.random() < 0.15 else raw


# Submissions


def submission(seed: int, records: dict[str, bytes]) -> bytes:
    """A file that says it is a submission."""
    rng = random.Random(f"submission {seed}")
    content = dict(records)
    key = rng.choice(sorted(content))
    fields: dict[str, Any] = {}
    match rng.randrange(8):
        case 0 | 1 | 2:  # as a forger would who knows the program, or does not
            value = changed(rng, json.loads(content.pop(key)), rng.choice([1, 1, 2]))
            if isinstance(value, dict) and rng.random() < 0.8:
                try:
                    value["key"] = Cell.model_validate(value.get("cell")).key
                    content[value["key"]] = resealed(value)
                except Exception:  # what was changed is no cell at all
                    content[key] = dumped(value)
            else:
                content[key] = dumped(value)
        case 3:
            word = rng.choice(
                ["method", "link", "note", "leakboard", "format", "verified", "colour"]
            )
            fields = {word: strange(rng)}
        case 4:
            content[key] = flipped(rng, content[key])
        case 5:
            big = rng.choice(
                [
                    b"[" * 10**6,
                    b"0" * (2**24 + 1),
                    b"[[],[]," * 10**6,
                    b'{"a":1,' * 10**5,
                    b"9" * 10**6,
                ]
            )
            content[key] = big
    named = members(content, **fields)
    match rng.randrange(8):
        case 0:
            raw = dumped(changed(rng, json.loads(manifest(content, **fields)), 1))
            named[0] = ("manifest.json", raw)
        case 1:
            name = rng.choice(
                [
                    "../x",
                    "/x",
                    "manifest.json",
                    "records/",
                    "records/" + "0" * 16 + ".json",
                    "a\\b",
                    "é",
                ]
            )
            named.insert(rng.randrange(len(named) + 1), (name, b"{}"))
        case 2:
            named = named[: rng.randrange(len(named) + 1)]
    mode = rng.choice([stat.S_IFREG] * 9 + [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO])
    kind = rng.choice([zipfile.ZIP_DEFLATED] * 9 + [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2])
    packed = zipped(named, mode | 0o644, kind)
    if rng.random() < 0.1:
        packed = flipped(rng, packed)
    return packed if rng.random() < 0.97 else rng.randbytes(rng.randrange(300))


# Folders of models


def model(seed: int, honest: Path, to: Path) -> Path:
    """The folder of a model."""
    rng = random.Random(f"model {seed}")
    folder = Path(shutil.copytree(honest, to))
    for _ in range(rng.choice([1, 1, 2])):
        rng.choice([_config, _config, _tokeniser, _weights, _weights, _index, _files, _files])(
            rng, folder
        )
    return folder


def _rewrite(path: Path, change: Callable[[Any], Any]) -> None:
    """Changes a JSON file, unless it was spoiled before."""
    if _own(path):
        with suppress(ValueError, RecursionError, TypeError):
            path.write_bytes(dumped(change(json.loads(path.read_bytes()))))


def _own(path: Path) -> bool:
    """Whether it is a file of the folder itself: no link is ever written through."""
    return path.is_file() and not path.is_symlink()


def _config(rng: random.Random, folder: Path) -> None:
    path = folder / "config.json"
    if not _own(path):
        return
    match rng.randrange(5):
        case 0:
            path.write_bytes(flipped(rng, path.read_bytes()))
        case 1:
            path.write_bytes(rng.choice([b"", b"[" * 200_000, b"9" * 6000, b"{}", b"[]", b"\0"]))
        case 2:
            word = rng.choice(
                ["transformers_weights", "attn_implementation", "auto_map", "quantization_config", "model_type",
                 "num_hidden_layers", "vocab_size", "hidden_size", "max_position_embeddings", "torch_dtype", "dtype",
                 "tie_word_embeddings", "architectures", "type_vocab_size", "num_attention_heads", "fusion_config"]
            )  # fmt: skip
            _rewrite(path, lambda value: value | {word: strange(rng)})
        case _:
            _rewrite(path, lambda value: changed(rng, value, 1))


def _tokeniser(rng: random.Random, folder: Path) -> None:
    path = folder / rng.choice(["tokenizer.json", "tokenizer_config.json"])
    if not _own(path):
        return
    match rng.randrange(4):
        case 0:
            path.write_bytes(flipped(rng, path.read_bytes()))
        case 1:
            path.write_bytes(rng.choice([b"", b"[" * 200_000, b"9" * 6000, b"{}", b"[]", b"\0"]))
        case 2:
            word = rng.choice(
                [
                    "tokenizer_file",
                    "vocab_file",
                    "auto_map",
                    "tokenizer_class",
                    "chat_template",
                    "pad_token",
                ]
            )
            _rewrite(path, lambda value: value | {word: strange(rng)})
        case _:
            _rewrite(path, lambda value: changed(rng, value, 1))


def _weights(rng: random.Random, folder: Path) -> None:
    path = folder / "model.safetensors"
    if not _own(path):
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
    if rng.random() < 0.7 and _own(path):
        path.rename(folder / "model-1.safetensors")
    if rng.random() < 0.3:
        _rewrite(index, lambda value: changed(rng, value, 1))


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


# Transcripts


def transcript(seed: int, honest: Path, to: Path) -> Path:
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
        words = [
            "classes",
            "splits",
            "messages",
            "cut",
            "vocabulary",
            "labels",
            "train",
            "files",
            "dropped",
            "model",
        ]
        match rng.randrange(4):
            case 0:
                word = rng.choice(words)
                _rewrite(path, lambda value: value | {word: strange(rng)})
            case 1:
                path.write_bytes(
                    rng.choice([b"", b"[" * 200_000, b"9" * 6000, b"{}", b"[]", b"\0", b"null"])
                )
            case _:
                _rewrite(path, lambda value: changed(rng, value, rng.choice([1, 1, 2])))
    if rng.random() < 0.15:
        spoiled = rng.choice([path, file])
        spoiled.write_bytes(flipped(rng, spoiled.read_bytes()))
    if rng.random() < 0.1:
        spoiled = rng.choice([path, file])
        spoiled.unlink()
        if rng.random() < 0.5:
            spoiled.symlink_to(rng.choice(["nowhere", "/dev/zero", "/etc/hostname"]))
    return folder
