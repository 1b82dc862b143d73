"""Models in a quantised GGUF file, which are dequantised to safetensors at first use."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch

from leakboard.bench.backbones.folders import CONFIG, too_large
from leakboard.bench.backbones.model_cache import cached_folder
from leakboard.bench.contracts import LeakboardError, MissingExtra, plain

SUFFIX = ".gguf"
ARCHITECTURES = ("gemma3", "llama", "qwen2", "qwen3")
"""Names in GGUF of the supported causal architectures."""
VERSION = 1
"""Increment when a change of the code changes the dequantised model."""


def folder(file: Path, model: str) -> Path:
    """Folder with the model of a GGUF file in float32; dequantised into the user's cache at first use.

    Args:
        model: name of the model, for messages.

    Raises:
        LeakboardError: no GGUF file, an unsupported architecture, or missing weights.
        MissingExtra: the package that reads such files is not installed.
    """
    digest = checksum(file)
    architecture = _architecture(file, model)
    if architecture not in ARCHITECTURES:
        raise LeakboardError(
            f"model '{model}': {file} has the architecture '{plain(architecture, 40)}', which is not supported "
            f"from GGUF; supported: {', '.join(ARCHITECTURES)}. Give the folder or the hub id of the "
            "model in safetensors"
        )
    return cached_folder(
        model, f"{file.stem}-{digest[:16]}-{VERSION}", lambda into: dequantise(file, model, into)
    )


def checksum(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _reader(file: Path, model: str) -> Any:
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise MissingExtra(f"gguf, which reads the model '{model}',", "gguf") from error
    try:
        return GGUFReader(file)
    except Exception as error:  # any fault of the file has the same remedy
        raise LeakboardError(
            f"model '{model}': {file} cannot be read as GGUF ({type(error).__name__}: {plain(error, 200)}). "
            "Fetch it again"
        ) from error


def _architecture(file: Path, model: str) -> str:
    field = _reader(file, model).get_field("general.architecture")
    if field is None:
        raise LeakboardError(f"model '{model}': {file} names no architecture; fetch it again")
    return str(field.contents())


def dequantise(file: Path, model: str, into: Path) -> None:
    """Writes weights, configuration and tokeniser of a file as a folder of safetensors."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import transformers

    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    where: dict[str, Any] = {"gguf_file": file.name}
    loader = transformers.AutoModelForCausalLM
    try:
        config = transformers.AutoConfig.from_pretrained(file.parent, **where)
        numbers = sum(int(tensor.n_elements) for tensor in _reader(file, model).tensors)
        if parameters := too_large(config, loader, numbers):
            raise LeakboardError(
                f"model '{model}': {file} describes a model with {parameters:,} parameters, but holds {numbers:,}; fetch it again"
            )
        weights, report = loader.from_pretrained(
            file.parent, **where, config=config, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **where)
    except LeakboardError:
        raise
    except Exception as error:  # any fault of the file has the same remedy
        reason = plain(error, 300)
        raise LeakboardError(
            f"model '{model}': {file} could not be read ({type(error).__name__}: {reason}). Give the folder or "
            "the hub id of the model in safetensors"
        ) from error
    if lost := sorted(set(report["missing_keys"]) - {"lm_head.weight"}):
        raise LeakboardError(
            f"model '{model}': {file} lacks {len(lost)} weights of its architecture, which would be random: "
            f"{', '.join(lost[:5])}"
        )
    save(weights, into)
    tokenizer.save_pretrained(into)


def save(weights: Any, into: Path) -> None:
    """Writes a dequantised model, which transformers does not save by itself."""
    with torch.device("meta"):
        plain_model = type(weights)(weights.config)
    plain_model.load_state_dict(weights.state_dict(), assign=True)
    plain_model.tie_weights()
    plain_model.save_pretrained(into)
    # The version of transformers has no effect and must not change the hash of the model.
    config = json.loads((into / CONFIG).read_text("utf-8"))
    for key in ("transformers_version", "quantization_config"):
        config.pop(key, None)
    (into / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True), "utf-8")
