"""Facts about a recorded training that hooks can see, for the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import LeakboardError
from leakboard.bench.exchange import Training
from leakboard.bench.external.passes import Pass

Known = TypeVar("Known")
SEVERAL_IDS = 20
"""Number of different ids at the ends of examples from which on no more are noted."""
SEVERAL = "part"
"""Some parameters of the model are trained, and no adapter says how."""


class TrainingFacts:
    """Counts what passes and optimisers show; what they do not show stays unknown.

    Args:
        model: the recorded model.
        seen: returns the number of passes that began.
    """

    def __init__(self, model: nn.Module, seen: Callable[[], int]) -> None:
        self._model, self._seen = model, seen
        self._parameters = {id(parameter) for parameter in model.parameters()}
        self._undo: Callable[[], None] = lambda: None
        self._examples: Counter[int] = Counter()
        self._backwards: Counter[int] = Counter()
        self._since: set[int] = set()
        self._packed: set[bool | None] = set()
        self._precisions: set[str] = set()
        self._longest = self._virtual = self._passes = self._steps = 0
        self._begins: set[int | None] = set()
        self._ends: set[int | None] = set()
        self._optimisers: set[str] = set()
        self._rates: list[float] = []
        self._checkpointing: bool | None = None

    def start(self) -> None:
        self._undo = register_optimizer_step_post_hook(self._stepped).remove

    def stop(self) -> None:
        self._undo()

    def note(self, seen: Pass, examples: int) -> None:
        """Note a training pass over so many examples."""
        if not self._passes:
            self._checkpointing = _is_checkpointing(self._model)
        self._passes += 1
        self._examples[examples] += 1
        self._packed.add(None if seen.layout is None else seen.layout.packed)
        if seen.layout is not None:
            self._virtual = max(self._virtual, seen.layout.virtual)
        if isinstance(seen.sent, Ragged) and len(seen.sent):
            self._longest = max(self._longest, int(seen.sent.lengths.max()))
        self._precisions.add(seen.precision or _dtype(self._model))
        self._note_ends(seen)
        seen.on_backward(self._differentiated)

    def _note_ends(self, seen: Pass) -> None:
        """Note ids with which examples begin and end, as far as they are the same."""
        ids, layout = seen.inputs, seen.layout
        if layout is None or ids is None or ids.dim() != 2 or ids.is_floating_point():
            self._begins, self._ends = {None}, {None}
        elif len(layout.at) and len(self._begins | self._ends) < SEVERAL_IDS:
            flat = ids.flatten()[layout.at.to(ids.device)].cpu()
            last = layout.lengths[layout.lengths > 0].cumsum(0) - 1
            first = last - layout.lengths[layout.lengths > 0] + 1
            self._begins |= {*flat[first].tolist()}
            self._ends |= {*flat[last].tolist()}

    def _differentiated(self, gradient: Tensor) -> None:
        self._since.add(torch._C._current_graph_task_id())

    def _stepped(self, optimiser: Optimizer, args: Any, kwargs: Any) -> None:
        """Note a step of an optimiser of this model, and refuse it if its pass was not seen."""
        groups = [g for g in optimiser.param_groups if self._trains(g)]
        if not groups:
            return
        if not self._seen():
            raise LeakboardError(
                "model: an optimiser changes its parameters, but no pass of it was seen. The loop must call this "
                "model object: not a compiled or traced version, and not submodules one by one"
            )
        self._steps += 1
        self._optimisers.add(type(optimiser).__name__.removeprefix("Accelerated"))
        self._rates += [float(group["lr"]) for group in groups if "lr" in group]
        if self._since:
            self._backwards[len(self._since)] += 1
            self._since = set()

    def _trains(self, group: dict[str, Any]) -> bool:
        return any(id(parameter) in self._parameters for parameter in group["params"])

    def as_training(self, epochs: int, head: str | None) -> Training:
        """What was seen.

        Args:
            epochs: number of complete rounds.
            head: holder of the output layer of a causal model.
        """
        tune, rank, alpha = _tuned(self._model)
        is_layout_known = bool(self._packed) and None not in self._packed
        return Training(
            epochs=epochs or None,
            passes=self._passes or None,
            steps=self._steps or None,
            batch_size=_usual(self._examples),
            accumulation=_usual(self._backwards),
            learning_rate=max(self._rates, default=None),
            optimiser=_single(self._optimisers),
            tune=tune,
            lora_rank=rank,
            lora_alpha=alpha,
            checkpointing=self._checkpointing,
            packing=True in self._packed if is_layout_known else None,
            precision=_single(self._precisions),
            virtual_tokens=self._virtual if is_layout_known else None,
            longest=self._longest or None,
            begins=_single(self._begins),
            ends=_single(self._ends),
            head=head,
        )


def _usual(counts: Counter[int]) -> int | None:
    """The most frequent number."""
    return counts.most_common(1)[0][0] if counts else None


def _single(names: set[Known]) -> Known | None:
    """The only one; None if there are several or none."""
    return next(iter(names)) if len(names) == 1 else None


def _dtype(model: nn.Module) -> str:
    first = next(model.parameters(), None)
    return "none" if first is None else str(first.dtype).removeprefix("torch.")


def _is_checkpointing(model: nn.Module) -> bool | None:
    """Whether blocks are checkpointed; None for a model whose code is not known."""
    from transformers import PreTrainedModel

    modules = list(model.modules())
    if any(getattr(m, "gradient_checkpointing", False) is True for m in modules):
        return True
    return False if any(isinstance(m, PreTrainedModel) for m in modules) else None


def _tuned(model: nn.Module) -> tuple[str | None, int | None, float | None]:
    """How a model is tuned, and rank and alpha of LoRA where peft says them."""
    configs = next((m.peft_config for m in model.modules() if hasattr(m, "peft_config")), None)
    if isinstance(configs, dict) and len(configs) == 1:
        (config,) = configs.values()
        kind = str(getattr(config.peft_type, "value", config.peft_type)).lower()
        return kind, getattr(config, "r", None), getattr(config, "lora_alpha", None)
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    if not trained:
        return None, None, None
    if any("lora_" in name for name in trained):
        return "lora", None, None
    return "full" if len(trained) == len(list(model.parameters())) else SEVERAL, None, None
