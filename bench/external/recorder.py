"""Records what the vendor of a split model would see, around a training loop that knows nothing of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

from torch import nn

from leakboard.bench.backbones import load_backbone
from leakboard.bench.contracts import LeakboardError, Recording, form
from leakboard.bench.exchange import Manifest, PublicModel, write_transcript
from leakboard.bench.external.hooks import CutHooks, CutPoint
from leakboard.bench.external.rows import IDS, example_keys
from leakboard.bench.external.transcript_writer import TranscriptWriter

PLACEHOLDER = re.compile(r"LABEL_\d+")
"""What transformers calls a class that nobody has named."""
RECORDED_MODULES: WeakSet[nn.Module] = WeakSet()
"""Modules of the models that are being recorded."""
LONGEST = 200
"""Characters of an error that a manifest keeps."""


class Recorder:
    """Writes a transcript folder of what a vendor at the cut sees while a model is trained.

    It holds for a `with` block, around a loop of your own or `Trainer.train()`, and changes nothing of
    the training: each number is the same with and without it. It records the vectors at the cut, the
    logits [B, C], ∂loss/∂logits, and the gradient at the cut where something below it is trained; the
    gradients are of what is differentiated, so of a scaled loss they are scaled. An example that comes
    again is in the next round.

    What flows is what is recorded. The hooks at the cut are set anew in every pass, behind all that are
    there by then: noise that a hook of yours adds to the output of a submodule is in the recording, and
    so are `inputs_embeds` of your own. Where ids are changed before the model is called, `about` says
    which examples they stand for.

    Passes in evaluation mode or without gradients are left out, unless a split is named for them; one in
    evaluation mode is training once it is differentiated.

    Example:
        with Recorder(trainer, cut=0, out="wire/", base="minilm"):
            trainer.train()

    Args:
        model: what the loop calls: a model of transformers, as it is or wrapped (by peft, or in a module
            of yours), its `Trainer`, or any module, where the cut is named.
        cut: 0 behind the word embeddings (what is looked up, before positions and norms), k behind
            block k; or the name of a submodule, whose output [B, L, d] or [B, d] is then what is sent.
        out: the folder; it must be new or empty.
        examples: the tokenised training set in the order of the truth, in which each example is found
            by its ids: sequences of ids, what a tokeniser returns, or a dataset with `input_ids`. By
            default that of the `Trainer`; without one, examples are numbered as they first appear.
        base: the public model: an embedded one, a folder, a hub id. By default the one from which the
            model was loaded; without one, attacks that need its weights are refused. Behind a submodule
            that is no block it may be named where one vector comes there per text.
        split: what training is recorded as; or a pair, that and what evaluation is recorded as.
        record: how many examples of each split are kept, and how many megabytes there may be.
        tokens: whether the vendor is sent the token ids, too, in the clear.

    Attributes:
        manifest: what was written; None before it was.

    Raises:
        LeakboardError: an argument is of no use, also on entry; on exit, nothing was seen, or the folder
            cannot be written.
    """

    def __init__(
        self,
        model: Any,
        cut: int | str = 0,
        out: str | Path = "transcript",
        *,
        examples: Any = None,
        base: str | Path | None = None,
        split: str | tuple[str, str] = "train",
        record: Recording | None = None,
        tokens: bool = False,
    ) -> None:
        splits = (split,) if isinstance(split, str) else split
        number_or_name = isinstance(cut, int | str) and not isinstance(cut, bool)
        names = isinstance(splits, Sequence) and all(isinstance(s, str) and s for s in splits)
        for name, value, fits, expected in (
            ("cut", cut, number_or_name, "a number, or the name of a submodule"),
            ("out", out, isinstance(out, str | Path), "the path of a folder"),
            ("base", base, isinstance(base, str | Path | None), "the name of a model"),
            ("split", split, names and 1 <= len({*splits}) == len(splits) <= 2, "one name, or two"),
            ("record", record, isinstance(record, Recording | None), "a Recording"),
        ):
            if not fits:
                raise LeakboardError(f"{name}: expected {expected}, got {form(value)}")
        self._model, own = _model_of(model)
        given = own if examples is None else examples
        keys = None if given is None else example_keys(given)
        self._cut, self._out, self._base = cut, Path(out), base
        self._tape = TranscriptWriter(record or Recording.model_validate({}), splits, keys, tokens)
        self._used = False
        self.manifest: Manifest | None = None

    def about(self, rows: Any) -> None:
        """Says which examples the next pass is about, where its ids do not tell.

        Args:
            rows: [B] their lines in the truth: a list, an array or a tensor.
        """
        self._tape.about(rows)

    def __enter__(self) -> Recorder:
        if self._used:
            raise LeakboardError("a Recorder records once; make another one, for another folder")
        place = CutPoint.of(self._model, self._cut)
        if any(module in RECORDED_MODULES for module in self._model.modules()):
            raise LeakboardError(
                "model: another Recorder is recording it; leave its `with` block first"
            )
        self._public = _public_model(place, self._base)
        if self._base is not None and place.cut is None:
            self._tape.only_pooled = place.name
        self._made = _new_folder(self._out)
        self._place, self._used = place, True
        self._modules = list(self._model.modules())
        RECORDED_MODULES.update(self._modules)
        self._watch = CutHooks(place, self._tape.take)
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.stop()
        for module in self._modules:
            RECORDED_MODULES.discard(module)
        try:
            self.manifest = self._write("" if error is None else _first_line(error))
        except LeakboardError as own:
            if self._made:
                with suppress(OSError):  # not empty: something was written, and stays
                    self._out.rmdir()
            if error is None:
                raise
            error.add_note(f"No transcript was written: {own}")

    def _write(self, cut_short: str) -> Manifest:
        seen, missing = self._tape.end(cut_short)
        if not seen.messages:
            told = [f"{n} {what}" for what, n in missing.left_out.items()]
            told += [f"{n} bytes of {c} beyond the megabytes" for c, n in seen.dropped.items()]
            raise LeakboardError(
                f"{self._out}: nothing was seen that could be recorded ("
                + (", ".join(told) or f"no pass of {type(self._model).__name__}")
                + "). Inside the `with` block the loop must call this very model, not a copy or a part "
                "of it, in training mode (model.train()) and with gradients; split=('train', 'dev') "
                "records evaluation, too"
            )
        classes = _classes(self._place, self._tape.classes)
        cut = self._place.cut or 0
        return write_transcript(seen, self._out, self._public, cut, classes, missing=missing)


def _model_of(given: Any) -> tuple[nn.Module, Any]:
    """The model that a loop calls, and the training set, if it is a Trainer that has one with ids."""
    if isinstance(given, nn.Module):
        return given, None
    model = getattr(given, "model", None)
    if not isinstance(model, nn.Module) or not hasattr(given, "train_dataset"):
        raise LeakboardError(
            "model: expected a model of transformers, a Trainer or another torch module, got "
            + form(given)
        )
    if getattr(given, "model_init", None) is not None:
        raise LeakboardError(
            "model: this Trainer makes a new model when it trains (model_init), which nobody can "
            "record before; make the Trainer with model=, instead"
        )
    data = given.train_dataset
    if data is None or not hasattr(data, "__len__") or not len(data):
        return model, None
    return model, data if isinstance(data[0], Mapping) and IDS in data[0] else None


def _public_model(place: CutPoint, base: str | Path | None) -> PublicModel:
    """What the manifest says of the model.

    Raises:
        LeakboardError: the base cannot be loaded, or is of another shape than the model.
    """
    name, own = type(place.model).__name__, place.encoder
    if own is None or place.cut is None:
        if base is None:
            return PublicModel(name)
        try:
            return PublicModel.of(load_backbone(str(base)))
        except LeakboardError as error:
            raise LeakboardError(f"base: {error}") from error
    named = str(base or getattr(own.model.config, "name_or_path", None) or "")
    try:
        if not named:
            raise LeakboardError("it was not loaded from anywhere")
        public = load_backbone(named)
    except LeakboardError as error:
        if base is not None:
            raise LeakboardError(f"base: {error}") from error
        warnings.warn(
            f"no public model is known of {name} ({error}): attacks that need one will be refused. "
            "Name it: base='minilm', a folder, or a hub id",
            stacklevel=3,
        )
        return PublicModel(name, None, len(own.embeddings), own.width)
    found, expected = tuple(public.embeddings.shape), tuple(own.embeddings.shape)
    if (found, public.blocks) != (expected, own.blocks):
        raise LeakboardError(
            f"base: '{named}' has {public.blocks} blocks and word embeddings {list(found)}, and the "
            f"model that is trained {own.blocks} and {list(expected)}. Name the one it started from"
        )
    return PublicModel.of(public)


def _new_folder(out: Path) -> bool:
    """Makes the folder, before anything is trained for it; whether it was not there.

    Raises:
        LeakboardError: it holds something, or cannot be made.
    """
    there = out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise LeakboardError(f"out: {out} is not empty; choose a new folder")
    except OSError as error:
        raise LeakboardError(f"out: {out} cannot be written ({error.strerror or error})") from error
    return not there


def _classes(place: CutPoint, logits: int | None) -> int | list[str]:
    """How many classes there are, by name where somebody has named them."""
    config = getattr(place.entrance, "config", None)
    names = [str(name) for _, name in sorted((getattr(config, "id2label", None) or {}).items())]
    n = max(2, logits or len(names))
    named = len(names) == n and not any(map(PLACEHOLDER.fullmatch, names))
    return names if named else n


def _first_line(error: BaseException) -> str:
    """Kind and first line."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}".removesuffix(": ")[:LONGEST]
