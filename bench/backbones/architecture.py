"""Size of an architecture, counted without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from leakboard.bench.backbones.families import family_of
from leakboard.bench.contracts import LeakboardError, did_you_mean, plain

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "roberta-base": {"model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514},
    "roberta-large": {
        "model_type": "roberta",
        "vocab_size": 50265,
        "max_position_embeddings": 514,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
    "llama-3-8b": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
    },
}
"""Configurations of published models; what is not given is the default of transformers."""
PER_WIDTH, PER_SCORE = 68, 10
"""Bytes of activations that a block saves for the backward pass in float32: for each token and dimension, and for each
pair of tokens and head. Twice those in 16 bits of Korthikanti et al. 2022, equation 2."""


@dataclass(frozen=True)
class Architecture:
    """Size of a model.

    Attributes:
        blocks, width, heads: numbers of blocks, dimensions of hidden states, and attention heads.
        weights: weights of the linear layers of a block.
        parameters: those of the whole model.
    """

    name: str
    blocks: int
    width: int
    heads: int
    weights: int
    parameters: int

    @classmethod
    def of(cls, name: str, model: Any) -> Architecture:
        """Count the parts of a model, which may be without weights (on torch's device `meta`)."""
        stack = family_of(model.config.model_type, name).stack(model)
        linear: list[Any] = [layer.weight for layer in stack.modules() if _is_linear(layer)]
        return cls(
            name,
            len(stack),
            model.config.hidden_size,
            model.config.num_attention_heads,
            sum(weight.numel() for weight in linear) // len(stack),
            sum(p.numel() for p in model.parameters()),
        )

    def memory(self, batch: int, length: int) -> float:
        """Bytes of training in float32, at most: the public model, the trained copy, and saved activations.

        Args:
            batch, length: examples in a batch, and tokens of the longest.
        """
        tokens = batch * length
        saved = PER_WIDTH * self.width + PER_SCORE * self.heads * length
        return 2 * 4 * self.parameters + tokens * saved * self.blocks


def architecture(name: str) -> Architecture:
    """The architecture of a published model by name, or of a folder with a `config.json`; no weights are read.

    Raises:
        LeakboardError: the name is unknown, the file cannot be read, or no family cuts the architecture.
    """
    from transformers import AutoConfig, AutoModel

    try:
        if name in CONFIGURATIONS:
            config = AutoConfig.for_model(**CONFIGURATIONS[name])
        elif (Path(name) / "config.json").is_file():
            config = AutoConfig.from_pretrained(name, local_files_only=True)
        else:
            raise LeakboardError(
                f"--as: '{plain(name, 80)}' is neither a known architecture nor a folder with a config.json. "
                f"{did_you_mean(name, CONFIGURATIONS)}"
            )
        with torch.device("meta"):
            model = AutoModel.from_config(config)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LeakboardError(
            f"--as: {plain(name, 80)}/config.json cannot be read ({plain(error)[:200]})"
        ) from error
    return Architecture.of(name, model)


def _is_linear(layer: nn.Module) -> bool:
    weight = getattr(layer, "weight", None)
    is_matrix = isinstance(weight, Tensor) and weight.ndim == 2
    return is_matrix and not isinstance(layer, nn.Embedding)
