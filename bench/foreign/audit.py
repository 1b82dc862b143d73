"""Attacks on a transcript that was recorded elsewhere, by a system that nobody here has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bench.backbones import Backbone
from bench.contracts import (
    Cell,
    Channel,
    Estimate,
    Goal,
    Guess,
    Ints,
    Leak,
    LeakboardError,
    Progress,
    Recording,
    Seeds,
    Transcript,
)
from bench.exchange import Manifest, Session, Tuned, read_transcript
from bench.foreign.pairing import grant
from bench.foreign.truth import Known, read_truth, tokens_sent
from bench.methods import Attack, Auxiliary, Defense, Source, spec_of
from bench.running import (
    Inputs,
    Pairing,
    Planned,
    attack_all,
    failed,
    isolated,
    knowledge_for,
    public_texts,
    told,
    worked_out,
)
from bench.suites import methods_named
from bench.tasks import OWN, Planted, Task, load_task


class Unknown(Defense):
    """Whatever made the transcript; it is not here and cannot run."""

    name: ClassVar[str] = "unknown"
    source: ClassVar[Source] = Source("recorded elsewhere")
    emits: ClassVar[frozenset[Channel]] = frozenset(Channel)

    def fine_tune(self, session: Session) -> Tuned:
        raise NotImplementedError("what made the transcript is not here")


@dataclass(frozen=True)
class Audit:
    """What attacks made of a transcript: scores and reasons, or guesses where there is no truth."""

    leaks: list[Leak]
    guesses: list[tuple[Attack, Guess]] = field(default_factory=list)

    def tables(self) -> Iterator[RenderableType]:
        """The scores, highest advantage first, and why the rest was not scored."""
        scored = [leak for leak in self.leaks if leak.success is not None]
        if scored:
            table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
            for name in ("attack", "goal", "view", "reads", "metric"):
                table.add_column(name, overflow="fold")
            for name in ("success", "chance"):
                table.add_column(name, justify="right", no_wrap=True)
            for leak in sorted(scored, key=lambda leak: -(leak.advantage or 0)):
                table.add_row(*_row(leak))
            yield table
            yield Text(
                "Success is from 0 to 1, with its 95 % interval; at chance this attack learns nothing. "
                "Whether it works at all on such a model, a run with the defense none shows.",
                style="dim",
            )
        for line in dict.fromkeys(
            f"{attack}: {guess.goal} of {guess.split}: {len(guess.values)} guesses about "
            f"{len(guess.rows)} examples"
            for attack, guess in self.guesses
        ):
            yield Text(line)
        for line in dict.fromkeys(
            f"{leak.status}: {leak.attack.name}, {leak.goal}: {leak.reason}"
            for leak in self.leaks
            if leak.status != "ok"
        ):
            yield Text(line, style="dim" if line.startswith("skipped") else "yellow")

    def write(self, file: Path) -> None:
        """Writes everything as JSON.

        Raises:
            LeakboardError: the file cannot be written.
        """
        content = {
            "leaks": [leak.model_dump(mode="json") for leak in self.leaks],
            "guesses": [
                {"attack": spec_of(attack).model_dump(mode="json")} | _plain(guess)
                for attack, guess in self.guesses
            ],
        }
        try:
            file.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise LeakboardError(f"{file}: cannot be written ({error.strerror})") from error


def attack_folder(
    folder: Path,
    backbone: Backbone,
    attacks: Sequence[str],
    progress: Progress,
    *,
    truth: Path | None = None,
    attributes: Sequence[str] = (),
    auxiliary: str | None = None,
    defense: str | None = None,
    data: Path | None = None,
    seed: int = 0,
) -> Audit:
    """Reads a transcript and what else is given, and attacks it; see `audit`.

    Args:
        attacks: as in a suite; none means all but the costly ones.
        auxiliary: the task whose public texts are granted.
        data: folder of datasets.

    Raises:
        LeakboardError: whatever is wrong with one of them.
    """
    chosen = methods_named("attack", attacks)
    mechanisms = methods_named("defense", [defense]) if defense else [None]
    if len(mechanisms) > 1:
        raise LeakboardError(f"--defense '{defense}': one setting is expected, not a list")
    if attributes and truth is None:
        raise LeakboardError("--attribute names a column of the truth: give --truth FILE, too")
    manifest, transcript = read_transcript(folder, backbone)
    known = read_truth(truth, manifest.classes, attributes) if truth else None
    foreign = {name: name for a in chosen if (name := getattr(a, "auxiliary", OWN)) != OWN}
    named = foreign | ({OWN: auxiliary} if auxiliary else {})
    public = {name: load_task(task, data) for name, task in named.items()}
    return audit(
        manifest, transcript, backbone, chosen, progress, known, mechanisms[0], public, seed
    )


def audit(
    manifest: Manifest,
    transcript: Transcript,
    backbone: Backbone,
    attacks: Sequence[Attack],
    progress: Progress,
    truth: Known | None = None,
    defense: Defense | None = None,
    public: Mapping[str, Task] | None = None,
    seed: int = 0,
) -> Audit:
    """Lets each attack that applies loose on a transcript, and scores it where the truth is known.

    Args:
        truth: splits that it does not have are left out.
        defense: the mechanism, where it is one that is known here.
        public: tasks whose public texts are granted, by the name under which attacks ask for them:
            `own` where an attack names none.

    Raises:
        LeakboardError: the truth does not belong to the transcript.
    """
    task = (
        truth.task
        if truth
        else Task("the transcript", tuple(map(str, range(manifest.classes))), {})
    )
    if truth:
        kept = tuple(m for m in transcript.messages if m.split in task.splits)
        transcript = Transcript(kept, transcript.dropped)
    recorded = {split: _rows(transcript, split) for split in task.splits}
    for split, rows in recorded.items():
        if not len(rows) or rows[-1] >= len(task.splits[split]):
            sent = f"rows up to {rows[-1]}" if len(rows) else f"only {', '.join(manifest.splits)}"
            raise LeakboardError(
                f"{task.source}: holds {len(task.splits[split])} examples of {split}; the transcript "
                f"has {sent}. Give a line for every row from 0 on, in their order"
            )
    by_text = truth is not None and Goal.INVERSION in truth.goals
    tokens = tokens_sent(truth, transcript, backbone) if truth and by_text else {}
    granted = {}
    for name, other in (public or {}).items():
        texts = public_texts(other, task)
        encoded = backbone.encode(texts.texts, texts.pairs, manifest.train.max_length)
        # Another task's labels and attributes mean nothing here.
        granted[name] = Auxiliary(encoded, np.zeros(0, np.int64))
    cell = Cell(
        task=task.name,
        data_hash=task.hash,
        limit=None,
        evaluate="train",
        model=backbone.name,
        model_hash=backbone.hash,
        cut=manifest.cut,
        defense=spec_of(defense or Unknown()),
        train=manifest.train,
        record=Recording(examples=max(manifest.splits.values())),
        seed=seed,
    )
    pairings = tuple(
        grant(attack, manifest.cut, transcript, truth, defense, granted) for attack in attacks
    )
    planned = Planned(cell, defense or Unknown(), pairings, None)
    inputs = Inputs(task, tokens, recorded, granted, Planted(task))
    transcript = worked_out(planned, transcript, backbone, len(task.labels), pairings)
    if truth:
        seeds = Seeds.of(seed)
        return Audit(attack_all(planned, transcript, inputs, backbone, pairings, seeds, progress))
    found = Audit([])
    for pairing in progress("attacking", pairings, len(pairings)):
        found.leaks.extend(pairing.skipped())
        if pairing.goals:
            _guess(found, pairing, planned, transcript, inputs, backbone)
    return found


def _guess(
    found: Audit,
    pairing: Pairing,
    planned: Planned,
    transcript: Transcript,
    inputs: Inputs,
    backbone: Backbone,
) -> None:
    attack, seeds = pairing.attack, Seeds.of(planned.cell.seed)
    knowledge = knowledge_for(pairing, planned, inputs, backbone)
    seen, rng = transcript.only(attack.threat.reads), np.random.default_rng(seeds.attack)
    try:
        guesses = isolated(partial(attack.guess, seen, knowledge, rng))
    except (Exception, SystemExit) as error:
        found.leaks.extend(failed(pairing, "failed", told(error)))
    else:
        found.guesses.extend((attack, guess) for guess in guesses if guess.goal in pairing.goals)


def _rows(seen: Transcript, split: str) -> Ints:
    parts = [m.rows for m in seen.messages if m.split == split and m.moment is None]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _row(leak: Leak) -> list[str]:
    assert leak.success is not None
    what = " ".join(filter(None, [leak.view, leak.attribute]))
    channel = leak.channel or "nothing"
    return [leak.attack.name, leak.goal, what, channel, leak.metric, *_told(leak.success)]


def _told(success: Estimate) -> list[str]:
    interval = f"{success.value:.3f} [{success.low:.3f}, {success.high:.3f}]"
    return [interval, f"{success.chance:.3f}"]


def _plain(guess: Guess) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(guess).items()
    }
