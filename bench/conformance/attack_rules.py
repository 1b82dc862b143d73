"""Conformance rules for attacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from leakboard.bench.backbones import Backbone
from leakboard.bench.conformance.rules import Broken, NotApplicable, Rules, Untried, rule
from leakboard.bench.conformance.trial import (
    EXAMPLES,
    Trial,
    copy_transcript,
    fingerprint,
    same_messages,
    undefended,
)
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Knows,
    Leak,
    MissingExtra,
    ThreatModel,
    Transcript,
    known_from,
)
from leakboard.bench.methods import Attack, registry
from leakboard.bench.scoring import NEEDED, advantage_low

LARGER: tuple[tuple[str | None, int, int], ...] = ((None, 1000, 3), ("minilm", 400, 1))
"""Model, examples and epochs of further trials on easier texts, for attacks that fail on the small slice.

Attacks that need meaningful embeddings fail on random weights, so the last trial uses the embedded encoder.
"""


@dataclass
class UndefendedCell:
    """A trained undefended cell, and the guesses of the attack about it.

    Attributes:
        sent: the transcript; attacks get copies of it.
    """

    trial: Trial
    sent: Transcript

    @cached_property
    def _first(self) -> tuple[list[Leak], list[Guess] | None]:
        guesses = list[Guess]()
        leaks = self.trial.attacked(self.seen, self.backbone, guesses)
        return leaks, None if _failures(leaks) and not guesses else guesses

    @property
    def leaks(self) -> list[Leak]:
        return self._first[0]

    @property
    def guesses(self) -> list[Guess] | None:
        """Guesses from which the leaks were scored; None on an error."""
        return self._first[1]

    @cached_property
    def seen(self) -> Transcript:
        return copy_transcript(self.sent)

    @cached_property
    def backbone(self) -> Backbone:
        return self.trial.context().backbone

    @cached_property
    def undisturbed(self) -> bool:
        """Whether a second run, on all channels and with all knowledge, gives the same guesses.

        Then a second run with less would, too, and is not made.
        """
        return self.agrees(self.guess(frozenset(Channel), told_all=True))

    @cached_property
    def steady(self) -> bool:
        """Whether a second run gives the same guesses."""
        return self.undisturbed or self.agrees(self.guess())

    def guess(
        self, visible: frozenset[Channel] | None = None, told_all: bool = False
    ) -> list[Guess] | None:
        """Guesses of the attack; None on an error.

        Args:
            visible: the channels that it sees; by default those that it declares.
            told_all: grant all knowledge.
        """
        if visible is None:
            visible = self.trial.planned.pairings[0].attack.threat.reads
        try:
            return self.trial.guesses(copy_transcript(self.sent, visible), told_all)
        except Exception:
            return None

    def agrees(self, guesses: list[Guess] | None) -> bool:
        return None not in (guesses, self.guesses) and same_messages(guesses, self.guesses)


class AttackRules(Rules[Attack]):
    """Rules for attacks, checked on one undefended cell per channel that the attack reads, and on noise."""

    def stages(
        self,
        model: str | None = None,
        examples: int = EXAMPLES,
        epochs: int = 1,
        plain: bool = False,
    ) -> Iterator[UndefendedCell]:
        """Undefended cells on which the attack has something to read, trained one by one."""
        reads = self.method.threat.reads
        left, why = set(reads), "no undefended defense sends on the channels that it reads"
        is_any = False
        for defense in undefended():
            if (reads and not left & known_from(defense.sends)) or (is_any and not reads):
                continue
            trial = Trial.of(
                defense, [self.method], model or self.model, examples, epochs, plain=plain
            )
            (pairing,) = trial.planned.pairings
            reasons = [*pairing.skip_reasons.values()] if not pairing.goals else []
            if trial.planned.skip_reason or reasons:
                why = "; ".join(filter(None, [trial.planned.skip_reason, *reasons]))
                continue
            sent = trial.shown()
            if not reads or left & sent.channels:
                left -= sent.channels
                is_any = True
                yield UndefendedCell(trial, sent)
        if not is_any:
            raise NotApplicable(why)

    @cached_property
    def cells(self) -> list[UndefendedCell]:
        return list(self.stages())

    @cached_property
    def working(self) -> list[UndefendedCell]:
        """The cells, if the attack guesses without an error on all of them."""
        if any(_failures(cell.leaks) for cell in self.cells):
            raise Untried("it does not return guesses that can be scored")
        return self.cells

    @cached_property
    def steady(self) -> list[UndefendedCell]:
        """The cells, if two runs give the same guesses on all of them."""
        if not all(cell.steady for cell in self.working):
            raise Untried("its guesses change from run to run")
        return self.working

    @rule("declares its threat model")
    def declares_threat(self) -> None:
        threat = getattr(self.cls, "threat", None)
        if not (
            isinstance(threat, ThreatModel)
            and threat.goals
            and threat.goals <= frozenset(Goal)
            and threat.reads <= frozenset(Channel)
            and threat.knows <= frozenset(Knows)
        ):
            raise Broken("set `threat: ClassVar[ThreatModel]` with at least one goal")
        if (Knows.LABELS in threat.knows) != bool(self.method.folds):
            raise Broken(f"an attack must set `folds` if, and only if, it knows {Knows.LABELS}")

    @rule("guesses about every recorded example, and can be scored")
    def can_be_scored(self) -> str:
        for cell in self.cells:
            if failures := _failures(cell.leaks):
                raise Broken(f"on {cell.trial.planned.defense}: {'; '.join(failures)}")
        leaks = [leak for cell in self.cells for leak in cell.leaks if leak.success]
        if not leaks:
            reasons = {leak.reason for cell in self.cells for leak in cell.leaks}
            raise NotApplicable("; ".join(sorted(reasons)))
        return ", ".join(str(cell.trial.planned.defense) for cell in self.cells)

    @rule("guesses the same again with the same seed")
    def repeats(self) -> None:
        if not all(cell.steady for cell in self.working):
            raise Broken(
                "a second run guessed something else; draw from `rng` only, "
                "and seed other generators from it"
            )

    @rule("leaves the transcript as it was")
    def spares_the_transcript(self) -> None:
        for cell in self.cells:
            tried = any("read-only" in reason for reason in _failures(cell.leaks))
            if tried or not same_messages(cell.seen.messages, cell.sent.messages):
                raise Broken("other attacks read the same arrays; change copies only")

    @rule("leaves the public model as it was")
    def spares_the_model(self) -> None:
        for cell in self.cells:
            if cell.leaks and fingerprint(cell.backbone) != fingerprint(cell.trial.backbone):
                raise Broken("`knowledge.base.model` was changed; train a deep copy of it")

    @rule("reads the channels that it declares, and no other")
    def reads_declared(self) -> None:
        reads = self.method.threat.reads
        # Without other channels, there is nothing to hide from the attack.
        others = [c for c in self.steady if c.sent.channels - reads and not c.undisturbed]
        if not all(cell.agrees(cell.guess(frozenset(Channel))) for cell in others):
            raise Broken(
                "with zeros on all other channels, its guesses change; add the channels that it reads "
                "to `threat.reads`"
            )

    @rule("uses the knowledge that it declares, and no other")
    def uses_declared_knowledge(self) -> None:
        for cell in (cell for cell in self.cells if not cell.undisturbed):
            informed = cell.guess(told_all=True)
            if informed is None:
                raise Untried("it does not return guesses")
            if cell.guesses is not None and not cell.steady:
                raise Untried("its guesses change from run to run")
            if not cell.agrees(informed):
                raise Broken(
                    "with more knowledge than it declares, its guesses change, or it works only then; "
                    "add the knowledge that it uses to `threat.knows`"
                )

    @rule("beats chance where nothing is protected")
    def beats_chance(self) -> str | None:
        if not self.method.threat.reads:
            raise NotApplicable("it reads nothing: a baseline")
        leaks = _scored(self.working)
        if not leaks:
            raise NotApplicable("this task gives it nothing to guess")
        # Trials of memorisation already use models that were trained to memorise.
        memory = self.method.threat.goals <= {Goal.MEMORISATION, Goal.MEMBERSHIP}
        for model, examples, epochs in () if memory else LARGER:
            if _certified(leaks):
                break
            larger: list[Leak] = []
            with suppress(MissingExtra):  # of the embedded encoder
                for cell in self.stages(model, examples, epochs, plain=True):
                    larger += _scored([cell])
                    if _certified(larger):
                        break
            leaks = larger or leaks
        if _certified(leaks):
            return None
        goals = {leak.goal for leak in leaks}
        best = {goal: max(map(_margin, (k for k in leaks if k.goal == goal))) for goal in goals}
        if min(best.values()) > 0:
            raise NotApplicable(
                f"it beats chance, but the lower end of its advantage is below {NEEDED} "
                f"on {self.model}; run a suite with an undefended cell on a real model"
            )
        weak = ", ".join(sorted(goal for goal, margin in best.items() if margin <= 0))
        raise Broken(
            f"{weak}: without protection, its interval is not above chance, even with more and easier examples on a "
            "real model; check the order of rows and tokens in `collect`, then the method"
        )

    @rule("finds nothing in pure noise")
    def finds_nothing_in_noise(self) -> None:
        # One in forty correct intervals is above chance by luck, but not the same one twice.
        leaks_in_noise = self._found_in_noise(0)
        if leaks_in_noise and (leaks_in_noise := leaks_in_noise & self._found_in_noise(1)):
            views = ", ".join(sorted(" ".join(filter(None, view)) for view in leaks_in_noise))
            raise Broken(
                f"{views}: its interval on `blackout`, which sends only noise, is above chance; "
                "does it learn from the data on which it is scored?"
            )

    def _found_in_noise(self, seed: int) -> set[tuple[str, ...]]:
        blackout = registry.defense("blackout")()
        trial = Trial.of(blackout, [self.method], self.model, seed=seed)
        if not trial.planned.pairings[0].goals:
            raise NotApplicable(
                "; ".join(sorted(set(trial.planned.pairings[0].skip_reasons.values())))
            )
        sent = trial.shown()
        leaks = _scored([UndefendedCell(trial, sent)])
        return {(k.goal, k.view, k.attribute or "") for k in leaks if _margin(k) > 0}


def _failures(leaks: Sequence[Leak]) -> list[str]:
    reasons = [leak.reason for leak in leaks if leak.status not in ("ok", "skipped")]
    return list(dict.fromkeys(reasons))


def _scored(cells: Sequence[UndefendedCell]) -> list[Leak]:
    return [leak for cell in cells for leak in cell.leaks if leak.success]


def _certified(leaks: Sequence[Leak]) -> bool:
    """Whether each goal has a certificate."""
    goals = {leak.goal for leak in leaks}
    works = {leak.goal for leak in leaks if (advantage_low(leak) or 0.0) >= NEEDED}
    return bool(goals) and goals == works


def _margin(leak: Leak) -> float:
    """Lower end of the interval minus chance."""
    assert leak.success is not None
    return leak.success.low - leak.success.chance
