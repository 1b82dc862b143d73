"""Tiny models that memorised some texts, and the texts."""

from __future__ import annotations

import random

import torch

from leakboard.bench.backbones import tiny
from leakboard.bench.tasks.loading import GENERATORS

KIND = "tiny-gpt2"
SCALE = 15
"""Factor of the random word embeddings: small ones bound the logits, so that nothing could be learned."""
LABELS = ("noa", "yes")


def sample_texts():
    """Members, others and public texts, 40 each."""
    every = GENERATORS["dialogues"]().split("train").texts
    texts = sorted({" ".join(text.split()[:12]) for text in every})
    random.Random(0).shuffle(texts)
    return texts[:40], texts[40:80], texts[80:120]


def base_model():
    """A tiny language model with its tokeniser."""
    model, tokenizer = tiny.build(KIND)
    model.transformer.wte.weight.data.mul_(SCALE)
    return model, tokenizer


def labelled_rows():
    """Three lists of 40 texts with labels that were drawn at random."""
    every = sorted({*GENERATORS["reviews"]().split("train").texts})
    draw = random.Random(1)
    draw.shuffle(every)
    rows = [(text, draw.choice(LABELS)) for text in every[:120]]
    return rows[:40], rows[40:80], rows[80:]


def fitted_classifier(rows):
    """A tiny BERT that was trained on some rows until it knew their labels, the encoder before, and the tokeniser."""
    import transformers

    encoder, tokenizer = tiny.build("tiny-bert")
    encoder.embeddings.word_embeddings.weight.data.mul_(SCALE)
    config = transformers.BertConfig(
        **encoder.config.to_dict() | {"id2label": dict(enumerate(LABELS)), "num_labels": 2}
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    model.bert.load_state_dict(encoder.state_dict())
    batch = tokenizer([text for text, _ in rows], padding=True, return_tensors="pt")
    labels = torch.tensor([LABELS.index(label) for _, label in rows])
    memorise(model, batch, labels, rate=2e-3, steps=40)
    return model, encoder, tokenizer


def memorise(model, batch, labels, rate, steps):
    """Trains a model on one batch, without dropout."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    model.eval()
    for _ in range(steps):
        model(**batch, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
