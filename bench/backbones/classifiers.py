"""Sequence classifiers of transformers as somebody trained them, with their heads; adapters are merged.

They are called as they are and never cut, so that any architecture will do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.backbones.adapters import CONFIG as ADAPTER_CONFIG
from leakboard.bench.backbones.adapters import (
    WEIGHTS,
    Adapter,
    is_adapter,
    merged,
    read_adapter,
)
from leakboard.bench.backbones.folders import CONFIG, model_files
from leakboard.bench.backbones.loading import (
    check_settings,
    check_size,
    check_tokenizer,
    model_folder,
)
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.backbones.tokeniser_trial import naming_panics, try_tokeniser
from leakboard.bench.contracts import LeakboardError, place, plain

ENDING = "ForSequenceClassification"
"""How transformers names its classifiers."""


@dataclass(frozen=True)
class Classifier:
    """A classifier in memory.

    Attributes:
        module: called with `input_ids` and `attention_mask`, it returns `logits` [B, C].
        labels: the name of each class, in the order of the logits.
    """

    name: str
    module: Any
    tokenizer: Any
    labels: tuple[str, ...]

    @classmethod
    def of(cls, module: Any, tokenizer: Any, name: str) -> Classifier:
        """Wrap a module with its tokeniser.

        Raises:
            LeakboardError: it has fewer than two classes, or several labels per text.
        """
        config = module.config
        if config.num_labels < 2:
            raise LeakboardError(
                f"model '{name}': it predicts a number, not a class; only classifiers with two or more classes can be audited"
            )
        if config.problem_type == "multi_label_classification":
            raise LeakboardError(
                f"model '{name}': it predicts several labels per text, which is not supported"
            )
        names = (config.id2label or {}).get
        labels = tuple(str(names(i, i)) for i in range(config.num_labels))
        return cls(name, module, tokenizer, labels)

    @property
    def device(self) -> Any:
        return next(self.module.parameters()).device

    @property
    def padding(self) -> int | None:
        """The id of the padding; texts go one by one through a model without any."""
        found: int | None = self.module.config.pad_token_id
        return found

    def encode(self, texts: list[str], longest: int) -> Ragged:
        """Token ids of texts, each cut to `longest` tokens; special tokens are added."""
        most = getattr(self.module.config, "max_position_embeddings", None) or longest
        if self.module.config.model_type in ("roberta", "xlm-roberta", "camembert"):
            most -= 2  # their positions begin behind that of padding
        with naming_panics(self.name):
            out = self.tokenizer(texts, truncation=True, max_length=min(longest, most))
        return Ragged.of(out["input_ids"])

    def class_of(self, label: str) -> int:
        """The class of a label in a file: its name, its number, or `LABEL_` and its number.

        Raises:
            LeakboardError: there is no such class.
        """
        words = {name.casefold(): i for i, name in enumerate(self.labels)}
        found = words.get(label.strip().casefold())
        if found is None:
            number = label.strip().removesuffix(".0")
            found = int(number) if number.isdecimal() else -1
        if not 0 <= found < len(self.labels):
            raise LeakboardError(
                f"'{plain(label, 40)}' is not a class of the model; expected {', '.join(self.labels[:10])}, or a class "
                f"number from 0 to {len(self.labels) - 1}"
            )
        return found

    def logs(self, ids: Ragged) -> Tensor:
        """[n, C] ln p of each class, on the CPU, in float32."""
        out = self.module(**self._inputs(ids)).logits
        found: Tensor = out.float().log_softmax(-1).cpu()
        return found

    def features(self, ids: Ragged) -> Tensor:
        """[n, d] the last hidden states below the head, averaged over the tokens, on the CPU."""
        inputs = self._inputs(ids)
        inner = self.module.get_base_model() if hasattr(self.module, "peft_config") else self.module
        hidden = inner.base_model(**inputs).last_hidden_state.float()
        mask = inputs["attention_mask"][:, :, None]
        found: Tensor = ((hidden * mask).sum(1) / mask.sum(1)).cpu()
        return found

    def _inputs(self, ids: Ragged) -> dict[str, Tensor]:
        # A causal classifier finds the last token of a text by the padding behind it.
        return {
            "input_ids": ids.padded(self.padding or 0).to(self.device),
            "attention_mask": ids.mask().long().to(self.device),
        }


def is_classifier(name: str) -> bool:
    """Whether a folder or a hub id holds a sequence classifier, or an adapter of one."""
    if name.startswith("tiny-"):
        return False
    folder = model_folder(name)
    adapted = is_adapter(folder)
    try:
        content = json.loads((folder / (ADAPTER_CONFIG if adapted else CONFIG)).read_text("utf-8"))
        if adapted:
            return bool(content["task_type"] == "SEQ_CLS")
        return any(str(each).endswith(ENDING) for each in content["architectures"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False  # what is wrong with the file is told by whoever loads the model


def load_classifier(name: str, base: str | None, device: str = "cpu") -> Classifier:
    """Load a classifier with its head, or an adapter of one merged into its base.

    Raises:
        LeakboardError: as for `load_backbone`; or weights of the head are missing.
    """
    folder = model_folder(name)
    if not is_adapter(folder):
        return _load(name, device)
    adapter = read_adapter(name, folder)
    return _load(adapter.required_base(base), device, adapter)


def load_encoder(name: str, device: str = "cpu") -> Classifier:
    """A base model below a random head, of which only `features` mean something."""
    return _load(name, device, random_head=True)


def _load(
    name: str, device: str, adapter: Adapter | None = None, random_head: bool = False
) -> Classifier:
    import transformers

    loader = transformers.AutoModelForSequenceClassification
    files = model_files(name, model_folder(name))
    check_settings(files, files.config())
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    size = {} if adapter is None else {"num_labels": _classes(adapter)}
    with files.view() as view:
        try_tokeniser(name, view)
        try:
            config = transformers.AutoConfig.from_pretrained(view, trust_remote_code=False)
            check_size(files, config, loader)
            tokenizer = transformers.AutoTokenizer.from_pretrained(view, trust_remote_code=False)
            module, found = loader.from_pretrained(
                view,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=random_head or adapter is not None,
                **size,
            )
        except LeakboardError:
            raise
        except Exception as error:  # whatever is wrong with the files, the remedy is the same
            reason = plain(str(error).replace(str(view), str(files.folder)), 500)
            raise LeakboardError(
                f"model '{name}': {files.folder} could not be read as a classifier ({type(error).__name__}: {reason})"
            ) from error
    check_tokenizer(name, tokenizer, module.config.vocab_size)
    lost = sorted(found["missing_keys"])
    if random_head or adapter is not None:  # the head is not read, or comes with the adapter
        below = f"{module.base_model_prefix}."
        lost = [key for key in lost if key.startswith(below) and "pooler" not in key]
    if lost:
        raise files.wrong(
            " and ".join(files.weights[:3]),
            f"lacks {len(lost)} weights of the classifier, which would be random: {', '.join(lost[:5])}",
        )
    if adapter is not None:
        module, name = merged(module, tokenizer, adapter, name), adapter.name
    module.eval().requires_grad_(False).to(device)
    if place(name, "model").exists():
        name = place(name, "model").resolve().name
    return Classifier.of(module, tokenizer, name)


def _classes(adapter: Adapter) -> int:
    """The number of classes of the head that an adapter holds.

    Raises:
        LeakboardError: it holds none.
    """
    from safetensors import safe_open

    try:
        with safe_open(adapter.folder / WEIGHTS, "pt") as file:
            names = file.keys()
            shapes = [file.get_slice(key).get_shape() for key in names if "lora_" not in key]
    except Exception as error:
        raise adapter.wrong(WEIGHTS, f"cannot be read ({plain(error)})") from error
    heads = [shape[0] for shape in shapes if len(shape) == 2]
    if not heads:
        raise adapter.wrong(
            WEIGHTS,
            "holds no classification head, which would be random. Train it with LoraConfig(task_type='SEQ_CLS'), which "
            "also saves the head",
        )
    return int(min(heads))
