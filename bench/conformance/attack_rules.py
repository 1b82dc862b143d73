"""Conformance rules for attacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from leakboard.bench.backbones import Backbone
from leakboard.bench.conformance.rules import Broken, NotApplicable, Rules, rule
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
"""Further chances of an attack that needs more than the small slice: model, examples, epochs.

Their texts say plainly what is to be guessed. What needs meaning to work fails on random weights; the
embedded encoder has some.
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
    def leaks(self) -> list[Leak]:
        return self.trial.attacked(self.seen, self.backbone)

    @cached_property
    def seen(self) -> Transcript:
        return copy_transcript(self.sent)

    @cached_property
    def backbone(self) -> Backbone:
        return self.trial.context().backbone

    @cached_property
    def guesses(self) -> list[Guess] | None:
        return self.guess()

    @cached_property
    def steady(self) -> bool:
        """Whether a second run guesses the same."""
        return self.agrees(self.guess())

    def guess(
        self, visible: frozenset[Channel] = frozenset(Channel), told_all: bool = False
    ) -> list[Guess] | None:
        """What the attack guesses, shown some channels only or told everything; None on an error."""
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
        """Undefended cells on which the attack has something to read, each trained when it is asked for."""
        reads = self.method.threat.reads
        left, why = set(reads), "no undefended defense sends what it reads"
        found = False
        for defense in undefended():
            if (reads and not left & known_from(defense.sends)) or (found and not reads):
                continue
            trial = Trial.of(
                defense, [self.method], model or self.model, examples, epochs, plain=plain
            )
            (pairing,) = trial.planned.pairings
            reasons = [*pairing.skip_reasons.values()] if not pairing.goals else []
            if trial.planned.skip_reason or reasons:
                why = "; ".join(filter(None, [trial.planned.skip_reason, *reasons]))
                continue
            sent = trial.train().transcript
            if not reads or left & sent.channels:
                left -= sent.channels
                found = True
                yield UndefendedCell(trial, sent)
        if not found:
            raise NotApplicable(why)

    @cached_property
    def scenes(self) -> list[UndefendedCell]:
        return list(self.stages())

    @cached_property
    def working(self) -> list[UndefendedCell]:
        """The scenes, where the attack guesses without an error."""
        if any(_failures(scene.leaks) for scene in self.scenes):
            raise NotApplicable("it does not return guesses that can be scored")
        return self.scenes

    @cached_property
    def steady(self) -> list[UndefendedCell]:
        """The scenes, where two runs can be compared."""
        if not all(scene.steady for scene in self.working):
            raise NotApplicable("its guesses change from run to run")
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
            raise Broken(f"who knows {Knows.LABELS} sets `folds`, and nobody else")

    @rule("guesses about every recorded example, and can be scored")
    def can_be_scored(self) -> str:
        for scene in self.scenes:
            if failures := _failures(scene.leaks):
                raise Broken(f"on {scene.trial.planned.defense}: {'; '.join(failures)}")
        leaks = [leak for scene in self.scenes for leak in scene.leaks if leak.success]
        if not leaks:
            reasons = {leak.reason for scene in self.scenes for leak in scene.leaks}
            raise NotApplicable("; ".join(sorted(reasons)))
        return ", ".join(str(scene.trial.planned.defense) for scene in self.scenes)

    @rule("guesses the same again with the same seed")
    def repeats(self) -> None:
        if not all(scene.steady for scene in self.working):
            raise Broken(
                "a second run guessed something else; draw from `rng` only, "
                "and seed other generators from it"
            )

    @rule("leaves the transcript as it was")
    def spares_the_transcript(self) -> None:
        for scene in self.scenes:
            tried = any("read-only" in reason for reason in _failures(scene.leaks))
            if tried or not same_messages(scene.seen.messages, scene.sent.messages):
                raise Broken("other attacks read the same arrays; copy what is to be changed")

    @rule("leaves the public model as it was")
    def spares_the_model(self) -> None:
        for scene in self.scenes:
            if scene.leaks and fingerprint(scene.backbone) != fingerprint(scene.trial.backbone):
                raise Broken("`knowledge.base.model` was changed; train a deep copy of it")

    @rule("reads the channels that it declares, and no other")
    def reads_declared(self) -> None:
        reads = self.method.threat.reads
        # Where nothing else was sent, it would be asked for the third time just the same.
        others = [scene for scene in self.steady if scene.sent.channels - reads]
        if not all(scene.agrees(scene.guess(visible=reads)) for scene in others):
            raise Broken(
                "with zeros on all other channels it guesses something else; add what it reads "
                "to `threat.reads`"
            )

    @rule("uses the knowledge that it declares, and no other")
    def uses_declared_knowledge(self) -> None:
        for scene in self.scenes:
            informed = scene.guess(told_all=True)
            if informed is None:
                raise NotApplicable("it does not return guesses")
            if scene.guesses is not None and not scene.steady:
                raise NotApplicable("its guesses change from run to run")
            if not scene.agrees(informed):
                raise Broken(
                    "told more than it declares it guesses something else, or only then works; "
                    "add what it uses to `threat.knows`"
                )

    @rule("beats chance where nothing is protected")
    def beats_chance(self) -> str | None:
        if not self.method.threat.reads:
            raise NotApplicable("it reads nothing: a baseline")
        leaks = _scored(self.working)
        # What a model remembers is looked for where it was made to remember: there is no better place.
        memory = self.method.threat.goals <= {Goal.MEMORISATION, Goal.MEMBERSHIP}
        for model, examples, epochs in () if memory else LARGER:
            if _certified(leaks):
                break
            larger: list[Leak] = []
            with suppress(MissingExtra):  # of the embedded encoder
                for scene in self.stages(model, examples, epochs, plain=True):
                    larger += _scored([scene])
                    if _certified(larger):
                        break
            leaks = larger or leaks
        if _certified(leaks):
            return None
        goals = {leak.goal for leak in leaks}
        best = {goal: max(map(_margin, (k for k in leaks if k.goal == goal))) for goal in goals}
        if not leaks:
            raise NotApplicable("this task gives it nothing to guess")
        if min(best.values()) > 0:
            raise NotApplicable(
                f"it beats chance, but the lower end of its advantage is below {NEEDED} "
                f"on {self.model}; run a suite with an undefended cell on a real model"
            )
        weak = ", ".join(sorted(goal for goal, margin in best.items() if margin <= 0))
        raise Broken(
            f"{weak}: without any protection its interval does not clear the chance level, with more and "
            "plainer examples and on a real model neither; look at the order of rows and tokens in `collect`, then at the method"
        )

    @rule("finds nothing in pure noise")
    def finds_nothing_in_noise(self) -> None:
        # One in forty honest intervals clears chance by luck; the same one does not twice.
        found = self._found_in_noise(0)
        if found and (found := found & self._found_in_noise(1)):
            views = ", ".join(sorted(" ".join(filter(None, view)) for view in found))
            raise Broken(
                f"{views}: its interval on `blackout` is above chance, where nothing is to be "
                "found; does it learn from what it is then scored on?"
            )

    def _found_in_noise(self, seed: int) -> set[tuple[str, ...]]:
        blackout = registry.defense("blackout")()
        trial = Trial.of(blackout, [self.method], self.model, seed=seed)
        if not trial.planned.pairings[0].goals:
            raise NotApplicable(
                "; ".join(sorted(set(trial.planned.pairings[0].skip_reasons.values())))
            )
        sent = trial.train().transcript
        leaks = _scored([UndefendedCell(trial, sent)])
        return {(k.goal, k.view, k.attribute or "") for k in leaks if _margin(k) > 0}


def _failures(leaks: Sequence[Leak]) -> list[str]:
    reasons = [leak.reason for leak in leaks if leak.status not in ("ok", "skipped")]
    return list(dict.fromkeys(reasons))


def _scored(scenes: Sequence[UndefendedCell]) -> list[Leak]:
    return [leak for scene in scenes for leak in scene.leaks if leak.success]


def _certified(leaks: Sequence[Leak]) -> bool:
    """Whether each goal has a certificate."""
    goals = {leak.goal for leak in leaks}
    works = {leak.goal for leak in leaks if (advantage_low(leak) or 0.0) >= NEEDED}
    return bool(goals) and goals == works


def _margin(leak: Leak) -> float:
    """By how much the interval clears the chance level; negative where it does not."""
    assert leak.success is not None
    return leak.success.low - leak.success.chance
