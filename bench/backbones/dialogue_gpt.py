"""The embedded causal language model `dialogue-gpt`: a small GPT-2, and how it was trained.

It was trained on the public half of the task `dialogues` only, so it knows no secrets of the other half. Its weights
are in the folder beside this file, since processors round differently: each would train another model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones.device import one_thread
from leakboard.bench.backbones.ragged import length_bucketed
from leakboard.bench.tasks import GENERATORS

BEGIN = "<|endoftext|>"
"""Token before and after each text, as in GPT-2."""
IGNORED = -100
FOLDER = Path(__file__).with_name("dialogue-gpt")
"""The trained model and its tokeniser."""
TRAINED_FROM = "6bc5ff34e8aa87c1"
"""Fingerprint of the recipe and the texts that the weights were trained from."""


@dataclass(frozen=True)
class Recipe:
    """All settings that determine the model, except for its texts."""

    version: int = 1
    """Increment when a change of the code changes the trained model."""
    layers: int = 4
    width: int = 128
    heads: int = 4
    vocabulary: int = 1500
    positions: int = 256
    texts: int = 2000
    """Largest number of public texts."""
    epochs: int = 6
    batch: int = 16
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    warmup: float = 0.1
    """Share of steps in which the learning rate rises; then it falls linearly to 0."""
    seed: int = 0


def public_texts(recipe: Recipe) -> Sequence[str]:
    """The texts that the model is trained on."""
    return GENERATORS["dialogues"]().split("auxiliary").texts[: recipe.texts]


def fingerprint(recipe: Recipe) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the recipe and its texts."""
    content = json.dumps([asdict(recipe), public_texts(recipe)])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def train(recipe: Recipe, texts: Sequence[str]) -> tuple[Any, Any]:
    """The model, with its output layer, and its tokeniser; the random state stays unchanged."""
    from rich.console import Console
    from rich.progress import track
    from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup, logging

    logging.disable_progress_bar()  # of transformers, for loading and saving
    tokenizer = byte_pairs(texts, recipe.vocabulary)
    end = tokenizer.bos_token_id
    rows = [[*ids, end][: recipe.positions] for ids in tokenizer(list(texts))["input_ids"]]
    lengths = torch.tensor([len(row) for row in rows])
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=recipe.positions,
        n_embd=recipe.width,
        n_layer=recipe.layers,
        n_head=recipe.heads,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
    )
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(recipe.seed)
        model = GPT2LMHeadModel(config).train()
        optimiser = torch.optim.AdamW(
            model.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        rng = np.random.default_rng(recipe.seed)
        order = [
            batch.tolist()
            for _ in range(recipe.epochs)
            for batch in length_bucketed(lengths, recipe.batch, rng)
        ]
        schedule = get_linear_schedule_with_warmup(
            optimiser, round(recipe.warmup * len(order)), len(order)
        )
        console = Console(file=sys.stderr)
        for batch in track(order, "training dialogue-gpt", console=console, transient=True):
            loss = _loss(model, [rows[i] for i in batch]).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return model.eval(), tokenizer


def byte_pairs(texts: Sequence[str], size: int) -> Any:
    """A byte-level BPE tokeniser trained on the texts, with one token per digit."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), bytes_]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[BEGIN],
        initial_alphabet=bytes_.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    inner.post_processor = processors.TemplateProcessing(
        single=[BEGIN, "$A"], pair=[BEGIN, "$A", "$B:1"], special_tokens=[(BEGIN, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token=BEGIN, eos_token=BEGIN, pad_token=BEGIN
    )


@torch.no_grad()
def perplexity(model: Any, tokenizer: Any, texts: Sequence[str]) -> float:
    """exp of the mean loss per token; the end of a text does not count."""
    rows = sorted(tokenizer(list(texts))["input_ids"], key=len)  # saves padding
    losses = [_loss(model, rows[i : i + 64]) for i in range(0, len(rows), 64)]
    return math.exp(torch.cat(losses).mean().item())


def _loss(model: Any, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """[T] cross-entropy of every token but the first of each row."""
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, IGNORED)
    real = ids != IGNORED
    logits = model(input_ids=ids.clamp(min=0), attention_mask=real.long()).logits[:, :-1]
    return cross_entropy(logits[real[:, 1:]], ids[:, 1:][real[:, 1:]], reduction="none")


def main() -> None:
    """Trains the model anew into a folder, and prints its perplexity and that of the weights in the package."""
    from transformers import AutoTokenizer, GPT2LMHeadModel

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where the new model is written")
    into = parser.parse_args().folder
    for part in train(Recipe(), public_texts(Recipe())):
        part.save_pretrained(into)
    for path in (FOLDER, into):
        model, tokenizer = (
            GPT2LMHeadModel.from_pretrained(path),
            AutoTokenizer.from_pretrained(path),
        )
        print(f"{path}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens")
        for split in ("auxiliary", "dev"):
            texts = GENERATORS["dialogues"]().split(split).texts
            value = perplexity(model.eval(), tokenizer, texts)
            print(f"perplexity per token on {split}: {value:.2f}")


if __name__ == "__main__":
    main()
