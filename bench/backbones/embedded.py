"""The models that come with the project or are made by it."""

from __future__ import annotations

EMBEDDED = {
    "minilm": "all-MiniLM-L6-v2, a real encoder of 22.7 M parameters that needs no download",
    "dialogue-gpt": "GPT-2 architecture, 1 M parameters, for language modelling; trained on the public "
    "half of the task dialogues at first use, in minutes",
    "gemma": "Gemma 3 270M, a real causal language model (268 M parameters), with the extra `gemma`: weights of "
    "about four bits, dequantised once at first use; under the Gemma terms of use (ai.google.dev/gemma/terms)",
    "tiny-bert": "random weights, BERT architecture, for tests",
    "tiny-deep-bert": "the same with six blocks",
    "tiny-gpt2": "random weights, GPT-2 architecture, for tests",
    "tiny-llama": "random weights, Llama architecture, for tests",
    "tiny-roberta": "random weights, RoBERTa architecture, for tests",
}
