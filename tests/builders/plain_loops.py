"""Fine-tuning as people write it with transformers, peft and Opacus, for comparison."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Tokens


class Classifier(nn.Module):
    """An encoder of transformers with LoRA on queries and values, and a linear head on the mean."""

    def __init__(self, backbone: Backbone, classes: int = 2) -> None:
        from peft import LoraConfig, inject_adapter_in_model

        super().__init__()
        targets = list(backbone.family.lora_targets)
        config = LoraConfig(r=8, lora_alpha=16, target_modules=targets)
        self.encoder = inject_adapter_in_model(config, copy.deepcopy(backbone.model))
        self.head = nn.Linear(backbone.width, classes)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> Any:
        h = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask[:, :, None].to(h.dtype)
        scores = self.head((h * weight).sum(1) / weight.sum(1))
        return scores if labels is None else {"loss": cross_entropy(scores, labels)}

    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]


def plain_step(backbone: Backbone, tokens: Tokens, labels: Tensor) -> Callable[[], None]:
    """A pass forward and back on one batch, without the optimiser's step."""
    model = Classifier(backbone).train()
    ids, mask = tokens.ids.padded(), tokens.ids.mask().long()

    def step() -> None:
        model.zero_grad(set_to_none=True)
        cross_entropy(model(ids, mask), labels).backward()

    return step


def opacus_step(backbone: Backbone, tokens: Tokens, labels: Tensor) -> Callable[[], None]:
    """A step of DP-SGD by Opacus' own hooks and optimiser."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    classifier = Classifier(backbone).train()
    model = GradSampleModule(classifier)
    plain = torch.optim.AdamW(classifier.trained(), 1e-3)
    optimiser = DPOptimizer(
        plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=len(tokens)
    )
    ids, mask = tokens.ids.padded(), tokens.ids.mask().long()

    def step() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hooks on modules whose input needs no gradient
            optimiser.zero_grad()
            cross_entropy(model(ids, mask), labels).backward()
            optimiser.step()

    return step


def trainer_epoch(
    backbone: Backbone, texts: Sequence[str], labels: Tensor, folder: Path, batch: int
) -> Callable[[], None]:
    """One epoch by the Trainer of transformers, from the copy of the public model on."""
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

    tokenizer = backbone.tokenizer
    rows = [
        dict(tokenizer(text, truncation=True, max_length=128), labels=int(label))
        for text, label in zip(texts, labels, strict=True)
    ]
    arguments = TrainingArguments(
        str(folder),
        num_train_epochs=1,
        per_device_train_batch_size=batch,
        learning_rate=1e-3,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )

    def epoch() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Trainer(
                Classifier(backbone),
                arguments,
                train_dataset=rows,
                data_collator=DataCollatorWithPadding(tokenizer),
            ).train()

    return epoch
