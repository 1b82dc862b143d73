"""Adapters of peft: checked, and merged into the model that they were trained for."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.bench.backbones.tokeniser_trial import try_tokeniser
from leakboard.bench.contracts import LeakboardError, Refused, parsed, plain

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LARGEST_CONFIG = 2**20
"""Bytes of the configuration of an adapter."""
TOKENISER = "tokenizer.json"


@dataclass(frozen=True)
class Adapter:
    """A checked folder of an adapter.

    Attributes:
        name: name of the adapter, for messages.
        base: model that its configuration names; empty if it names none.
        hash: SHA-256 over its configuration and weights.
    """

    name: str
    folder: Path
    base: str
    hash: str

    def wrong(self, file: str, what: str) -> LeakboardError:
        """Error about one of the files."""
        return LeakboardError(f"model '{self.name}': {self.folder / file} {what}")

    def required_base(self, given: str | None) -> str:
        """The base model that the user gave.

        Raises:
            LeakboardError: none was given.
        """
        if given is None:
            raise LeakboardError(
                f"model '{self.name}': {self.folder} is an adapter, which needs its base model. Name that "
                f"model as well: --base {self.base or 'MODEL'}"
            )
        return given


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter of peft."""
    return (folder / CONFIG).exists() or any(folder.glob("adapter_model.*"))


def read_adapter(name: str, folder: Path) -> Adapter:
    """Check the files of an adapter.

    Raises:
        LeakboardError: no configuration, no safetensors, or a file that cannot be read.
    """
    adapter = Adapter(name, folder, "", "")
    for required in (CONFIG, WEIGHTS):
        if not (folder / required).is_file():
            raise adapter.wrong(
                required,
                "is missing. Adapters are read from safetensors only; save yours with "
                "peft's save_pretrained",
            )
    try:
        if (folder / CONFIG).stat().st_size > LARGEST_CONFIG:
            raise adapter.wrong(CONFIG, f"has more than {LARGEST_CONFIG:,} bytes")
        raw = (folder / CONFIG).read_bytes()
        content = parsed(raw, "it")
        digest = hashlib.sha256(raw)
        with (folder / WEIGHTS).open("rb") as file:
            while block := file.read(2**24):
                digest.update(block)
    except OSError as error:
        raise LeakboardError(
            f"model '{name}': {folder} cannot be read ({error.strerror})"
        ) from error
    except Refused as error:
        raise adapter.wrong(CONFIG, f"cannot be used: {error}") from error
    if not isinstance(content, dict):
        raise adapter.wrong(CONFIG, "is not a JSON object")
    base = plain(content.get("base_model_name_or_path") or "", 200)
    return Adapter(name, folder, base, digest.hexdigest())


def merged(model: Any, tokenizer: Any, adapter: Adapter, base: str) -> Any:
    """A model with the adapter's changes in its weights.

    Args:
        model: the base model with its output layer; it is changed in place.

    Raises:
        LeakboardError: the adapter is of another model, another tokeniser, or a kind that cannot be merged.
    """
    from peft import PeftConfig, get_peft_model, set_peft_model_state_dict
    from safetensors.torch import load_file

    _check_tokeniser(tokenizer, adapter, base)
    try:
        config = PeftConfig.from_pretrained(str(adapter.folder))
        weights = load_file(adapter.folder / WEIGHTS)
    except Exception as error:  # any fault of the files has the same remedy
        raise LeakboardError(
            f"model '{adapter.name}': {adapter.folder} could not be read as a peft adapter "
            f"({type(error).__name__}: {plain(error)}); save it again with save_pretrained"
        ) from error
    longest = max((max(each.shape, default=0) for each in weights.values()), default=0)
    if getattr(config, "r", 0) > longest:  # peft would allocate the rank of the configuration
        raise adapter.wrong(
            CONFIG, f"asks for rank {config.r}, but no dimension of the weights is that large"
        )
    if getattr(config, "is_prompt_learning", False):
        raise adapter.wrong(
            CONFIG,
            f"describes {plain(config.peft_type, 40)}, which has no weights to merge; LoRA and its variants are supported",
        )
    config.inference_mode = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peft calls what transformers has deprecated
            tuned = get_peft_model(model, config)
            outcome = set_peft_model_state_dict(tuned, weights)
    except Exception as error:
        raise _other_base(adapter, base, f"{type(error).__name__}: {plain(error)}") from error
    present = {key.replace(".default", "") for key in weights}
    lost = [
        key
        for key in outcome.missing_keys
        if "lora_" in key and key.replace(".default", "") not in present
    ]
    if outcome.unexpected_keys or lost:
        first = [*outcome.unexpected_keys, *lost][0]
        raise _other_base(adapter, base, f"such as {plain(first, 120)}")
    return tuned.merge_and_unload()


def _other_base(adapter: Adapter, base: str, why: str) -> LeakboardError:
    named = f"; its configuration names '{adapter.base}'" if adapter.base else ""
    return LeakboardError(
        f"model '{adapter.name}': {adapter.folder / WEIGHTS} does not fit the base model '{base}' "
        f"({why}). Name the model from which training started{named}"
    )


def _check_tokeniser(tokenizer: Any, adapter: Adapter, base: str) -> None:
    """Raise LeakboardError if the folder of the adapter has another tokeniser than the base model."""
    if not (adapter.folder / TOKENISER).is_file():
        return
    from tokenizers import Tokenizer

    try_tokeniser(adapter.name, adapter.folder)
    try:
        saved = Tokenizer.from_file(str(adapter.folder / TOKENISER)).get_vocab()
    except Exception as error:
        raise adapter.wrong(TOKENISER, f"cannot be read ({plain(error)}); remove it") from error
    if word := differing_token(saved, tokenizer.get_vocab()):
        raise adapter.wrong(
            TOKENISER,
            f"differs from the tokeniser of the base model '{base}', for example in the token '{plain(word, 40)}'. "
            "Name the model from which training started",
        )


def differing_token(tuned: dict[str, int], base: dict[str, int]) -> str | None:
    """First token of the base vocabulary that has another id in the tuned one, or is missing there."""
    return next((word for word, i in base.items() if tuned.get(word) != i), None)
