"""Recorder: records what the vendor of a split model would see, around an unmodified training loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal
from weakref import WeakSet

from rich.console import Console, RenderableType
from rich.text import Text
from torch import nn

from leakboard.bench.contracts import LeakboardError, Recording, form
from leakboard.bench.exchange import Manifest, write_transcript
from leakboard.bench.external.cut_point import CutPoint
from leakboard.bench.external.hooks import CutHooks
from leakboard.bench.external.outcome import messages_table
from leakboard.bench.external.recorded_model import (
    classes_of,
    model_of,
    objective_of,
    public_model,
)
from leakboard.bench.external.rows import example_keys
from leakboard.bench.external.sentences import recording_sentences
from leakboard.bench.external.training_facts import TrainingFacts
from leakboard.bench.external.transcript_writer import TranscriptWriter
from leakboard.bench.external.visibility import check_model
from leakboard.bench.running import progress_console

RECORDED_MODULES: WeakSet[nn.Module] = WeakSet()
"""Modules of all models that are being recorded."""
LONGEST = 200
"""Maximum number of characters of an error in a manifest."""


class Recorder:
    """Write a transcript folder of what a vendor at the cut sees while a model is trained.

    Use it in a `with` block around your own loop or `Trainer.train()`. It does not change the training: all
    numbers are the same with and without it. It records the vectors at the cut, the logits [B, C], ∂loss/∂logits,
    and the gradient at the cut if parameters below it train. Gradients are those of the differentiated value, so
    they are scaled if the loss is scaled. An example that occurs again belongs to the next round.

    Of a causal language model, gradients of every token are recorded in the first round: at the logits [T, V] if the
    vendor holds the output layer, else at the vectors [T, d] below it, which are recorded as well.

    Hooks at the cut are registered again in every pass, after all other hooks. So noise that your own hook adds to
    the output of a submodule is recorded, and so are your own `inputs_embeds`. If ids are changed before the model
    is called, `about` names the examples of a batch. Packed examples are told apart by `position_ids`.

    Passes in evaluation mode or without gradients are not recorded, unless a split is named for them. A pass in
    evaluation mode counts as training as soon as it is differentiated.

    Args:
        model: the object that the loop calls: a transformers model, possibly wrapped (by peft or in a module), its
            `Trainer`, or any module if the cut is a name.
        cut: 0 for the word embeddings (before positions and norms), k for the output of block k; or the name of a
            submodule whose output [B, L, d] or [B, d] is sent.
        out: the folder to write; it must be new or empty.
        examples: the tokenised training set in the order of the truth, in which examples are looked up by their
            ids: sequences of ids, the output of a tokeniser, or a dataset with `input_ids`. Default: that of the
            `Trainer`; without one, examples are numbered in order of appearance.
        base: the public model: an embedded one, a folder, or a hub id. Default: the model was loaded from it;
            without one, attacks that need its weights are skipped. For a submodule that is no block, it may be
            given if one vector per text is sent.
        split: name of the training split; or a pair with the name of the evaluation split.
        record: limits on recorded examples per split and on megabytes.
        tokens: whether token ids are sent to the vendor in the clear, too.
        head: holder of the output layer of a causal language model. Default: the vendor; but the customer, if the
            loss is computed within the layer, so that no logits exist.
        progress: whether the end of the recording is told on a terminal; or a console of rich, to which it is told.

    Attributes:
        manifest: the written manifest; None before the block ends.

    Raises:
        LeakboardError: an argument is invalid (also on entry); the loop cannot be seen (at its first pass); on exit,
            nothing was recorded, or the folder cannot be written.

    Examples:
        >>> import leakboard as lb
        >>> with lb.Recorder(trainer, cut=0, out="wire/", base="minilm"):  # doctest: +SKIP
        ...     trainer.train()
    """

    def __init__(
        self,
        model: object,
        cut: int | str = 0,
        out: str | Path = "transcript",
        *,
        examples: object = None,
        base: str | Path | None = None,
        split: str | tuple[str, str] = "train",
        record: Recording | None = None,
        tokens: bool = False,
        head: Literal["vendor", "customer"] | None = None,
        progress: bool | Console = True,
    ) -> None:
        splits = (split,) if isinstance(split, str) else split
        number_or_name = isinstance(cut, int | str) and not isinstance(cut, bool)
        names = isinstance(splits, Sequence) and all(isinstance(s, str) and s for s in splits)
        for name, value, fits, expected in (
            ("cut", cut, number_or_name, "a number, or the name of a submodule"),
            ("out", out, isinstance(out, str | Path), "the path of a folder"),
            ("base", base, isinstance(base, str | Path | None), "the name of a model"),
            ("split", split, names and 1 <= len({*splits}) == len(splits) <= 2, "one name, or two"),
            ("head", head, head in ("vendor", "customer", None), "'vendor' or 'customer'"),
            ("record", record, isinstance(record, Recording | None), "a Recording"),
        ):
            if not fits:
                raise LeakboardError(f"{name}: expected {expected}, got {form(value)}")
        self._model, own = model_of(model)
        self._trainer = None if model is self._model else model
        given = own if examples is None else examples
        keys = None if given is None else example_keys(given)
        self._splits = splits
        self._cut, self._out, self._base = cut, Path(out), base
        self._tape = TranscriptWriter(record or Recording.model_validate({}), splits, keys, tokens)
        self._tape.head = head
        self._used, self._console = False, progress_console(progress)
        self.manifest: Manifest | None = None

    def about(self, rows: object) -> None:
        """Name the examples of the next pass, if its ids do not identify them.

        Args:
            rows: [B] their row numbers in the truth, as a list, an array or a tensor.
        """
        self._tape.about(rows)

    @property
    def summary(self) -> tuple[str, ...]:
        """Sentences: what was recorded, what is missing, and what to do next; none before the block ends."""
        return () if self.manifest is None else tuple(recording_sentences(self.manifest, self._out))

    def tables(self) -> Iterator[RenderableType]:
        """The summary, and the messages on each channel, for a terminal."""
        if self.manifest is not None:
            yield from (Text(f"- {sentence}") for sentence in self.summary)
            yield messages_table(self.manifest)

    def __enter__(self) -> Recorder:
        if self._used:
            raise LeakboardError("a Recorder records once; create another one for another folder")
        check_model(self._model, self._trainer)
        place = CutPoint.of(self._model, self._cut)
        if any(module in RECORDED_MODULES for module in self._model.modules()):
            raise LeakboardError(
                "model: another Recorder is recording it; leave its `with` block first"
            )
        if self._tape.head and not place.causal:
            raise LeakboardError(
                f"head: {type(self._model).__name__} is not a causal language model, whose output layer the vendor or "
                "the customer holds; leave it out"
            )
        self._public = public_model(place, self._base)
        if self._base is not None and place.cut is None:
            self._tape.only_pooled = place.name
        self._tape.causal = place.causal
        self._made = _new_folder(self._out)
        self._place, self._used = place, True
        self._modules = list(self._model.modules())
        RECORDED_MODULES.update(self._modules)
        self._watch = CutHooks(place, self._tape.take)
        self._facts = TrainingFacts(self._model, lambda: self._watch.passes)
        self._tape.note = self._facts.note
        self._watch.start()
        self._facts.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.stop()
        self._facts.stop()
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
            if not isinstance(error, LeakboardError):
                error.add_note(f"No transcript was written: {own}")
        if self._console is not None:
            self._console.print(*self.tables(), sep="\n")

    def _write(self, cut_short: str) -> Manifest:
        seen, missing = self._tape.end(cut_short)
        if not seen.messages:
            omissions = [f"{n} {what}" for what, n in missing.left_out.items()]
            omissions += [f"{n} bytes of {c} beyond the megabytes" for c, n in seen.dropped.items()]
            raise LeakboardError(
                f"{self._out}: nothing was recorded ("
                + (", ".join(omissions) or f"no pass of {type(self._model).__name__}")
                + "). Inside the `with` block the loop must call this model object, not a copy or a part "
                "of it, in training mode (model.train()) and with gradients enabled; split=('train', 'dev') "
                "also records evaluation"
            )
        objective = objective_of(self._place, self._tape.classes)
        classes = classes_of(self._place, 1 if objective == "regression" else self._tape.classes)
        if self._tape.head:
            objective, classes = None, 0
        cut = self._place.cut or 0
        rounds = {m.round for m in seen.messages if m.split == self._splits[0]}
        training = self._facts.as_training(len(rounds), self._tape.head)
        return write_transcript(
            *(seen, self._out, self._public, cut, classes),
            missing=missing,
            objective=objective,
            training=training.model_copy(update={"order": self._tape.order(seen)}),
        )


def _new_folder(out: Path) -> bool:
    """Create the folder before training starts, and return whether it is new.

    Raises:
        LeakboardError: the folder is not empty, or cannot be created.
    """
    there = out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise LeakboardError(f"out: {out} is not empty; choose a new folder")
    except OSError as error:
        raise LeakboardError(f"out: {out} cannot be written ({error.strerror or error})") from error
    return not there


def _first_line(error: BaseException) -> str:
    """Type and first line of an error."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}".removesuffix(": ")[:LONGEST]
