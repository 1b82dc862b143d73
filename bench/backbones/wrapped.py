"""Models that are in memory already, with the adapters of peft on them, as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.classifiers import ENDING
from leakboard.bench.backbones.families import family_of
from leakboard.bench.contracts import LeakboardError

COMPARED = 64
"""Tokens on which a model and its parts are compared."""
EXACT, ROUNDED = 1e-3, 0.2
"""Largest mean difference of ln p in float32, and in other precisions, in nats."""


def unwrapped(module: Any) -> Any:
    """The transformers model below an adapter of peft, which stays in its layers."""
    return module.get_base_model() if is_adapted(module) else module


def is_adapted(module: Any) -> bool:
    """Whether a module is a model of peft."""
    return hasattr(module, "peft_config") and hasattr(module, "get_base_model")


def is_classifier_module(module: Any) -> bool:
    """Whether a module is a sequence classifier of transformers."""
    return type(unwrapped(module)).__name__.endswith(ENDING)


@contextmanager
def evaluated(module: Any, adapted: bool = True) -> Iterator[None]:
    """A module without dropout, and without its adapter if not `adapted`; as it was when the block ends."""
    training = module.training
    module.eval()
    try:
        with nullcontext() if adapted else module.disable_adapter(), torch.inference_mode():
            yield
    finally:
        module.train(training)


def wrap_language_model(module: Any, tokenizer: Any, name: str = "") -> Backbone:
    """A causal language model in memory, of which parts are called as those of a model that was loaded.

    Args:
        module: in evaluation mode.

    Raises:
        LeakboardError: it is none, its architecture is not supported, or its parts do not add up to what it
            predicts, as with prompt tuning or an adapted output layer.
    """
    inner = unwrapped(module)
    name = name or type(inner).__name__
    if not hasattr(getattr(inner, "config", None), "model_type"):
        raise LeakboardError(
            f"model: expected a path, or a transformers or peft model, got {type(module).__name__}"
        )
    family = family_of(inner.config.model_type, name)
    output = inner.get_output_embeddings()
    head = None if output is None else output.weight.detach()
    device = str(family.embeddings(inner.base_model).weight.device)
    backbone = Backbone(name, "", inner.base_model, tokenizer, family, device, head)
    _check_parts(module, backbone)
    return backbone


def _check_parts(module: Any, backbone: Backbone) -> None:
    head = backbone.output_layer()
    ids = torch.arange(min(COMPARED, len(head)), device=backbone.device)[None]
    words = backbone.family.embeddings(backbone.model)(ids)
    mask = torch.ones_like(ids, dtype=torch.bool)
    hidden = backbone.family.top(backbone.model, words, mask, torch.zeros_like(ids), 0)
    ours = (hidden @ head.T.to(hidden.dtype)).float().log_softmax(-1)
    whole = module(input_ids=ids, attention_mask=mask.long()).logits.float()
    bound = EXACT if head.dtype == torch.float32 else ROUNDED
    if whole.shape == ours.shape:
        chance = ours.exp()
        if float((chance * (whole.log_softmax(-1) - ours).abs()).sum(-1).mean()) < bound:
            return
    raise LeakboardError(
        f"model: {backbone.name} does not predict what its base model and output layer predict, as after prompt "
        "tuning, or with an adapter on the output layer. Merge the adapter first (merge_and_unload), or leave out "
        "such layers"
    )
