"""Conformance rules for defenses."""

from __future__ import annotations

from functools import cached_property

import torch

from leakboard.bench.conformance.rules import Broken, NotApplicable, Rules, Untried, rule
from leakboard.bench.conformance.trial import Trained, Trial, fingerprint, same_messages, variants
from leakboard.bench.contracts import Channel, Record, known_from
from leakboard.bench.methods import Defense, registry

LITTLE = 0.01
"""Mean change of the scores, in their standard deviations, below which they count as unchanged."""
LITTLE_LEARNT = 1e-5
"""The same after the few steps of a trial, which change scores little anyway."""
RECORDED, PUBLIC = 24, 1
"""Recorded examples, and public texts per example; attacks need not succeed on a defense, but run to their end."""
TOLERANCE = 1e-3
"""Tolerance of class scores, since rounding depends on the shape of a batch."""


class DefenseRules(Rules[Defense]):
    """Rules for defenses, checked on three trainings: two identical ones, and one with other noise."""

    @cached_property
    def trial(self) -> Trial:
        attacks = [attack() for attack in registry.attacks().values()]
        trial = Trial.of(self.method, attacks, self.model, recorded=RECORDED, public=PUBLIC)
        if trial.planned.skip_reason:
            raise NotApplicable(
                f"it refuses every cut of {self.model}: {trial.planned.skip_reason}"
            )
        return trial

    @cached_property
    def record(self) -> Record:
        return self.trial.record()

    @cached_property
    def trained(self) -> Trained:
        """The first training."""
        trial = self.trial
        try:
            return trial.train()
        except Exception as error:
            raise Untried("it does not fine-tune to the end") from error

    @cached_property
    def is_noisy(self) -> bool:
        """Whether two predictions in a row give the same examples other scores."""
        tuned, dev = self.trained.tuned, self.trial.inputs.tokens["dev"]
        return not _near(tuned.predict(dev, "dev"), tuned.predict(dev, "dev"))

    @rule("declares the channels on which it sends")
    def declares_channels(self) -> None:
        emits = getattr(self.cls, "emits", None)
        if not (isinstance(emits, frozenset) and emits and emits <= frozenset(Channel)):
            raise Broken("set `emits: ClassVar[frozenset[Channel]]`: it decides which attacks run")

    @rule("names twins that send what it sends, with the protection off")
    def names_twins(self) -> str:
        twins = [twin for aim in sorted(self.method.objectives) for twin in self.method.twins(aim)]
        for twin in twins:
            if not twin.undefended:
                raise Broken(f"its twin {twin} is defended: `undefended` is false there")
            if missing := self.method.sends - twin.sends:
                raise Broken(
                    f"its twin {twin} does not send {', '.join(sorted(missing))}, so attacks that "
                    "read this cannot be certified"
                )
        note = (
            ""
            if self.method.undefended
            else "none: a failed attack on it will count as not certified"
        )
        return ", ".join(dict.fromkeys(map(str, twins))) or note

    @rule("fine-tunes to the end")
    def fine_tunes(self) -> None:
        if self.record.status != "ok":
            raise Broken(f"the cell ended {self.record.status}: {self.record.reason}")

    @rule("sends on declared channels only")
    def sends_declared(self) -> None:
        undeclared = self.trained.transcript.channels - known_from(self.method.sends)
        if undeclared:
            raise Broken(f"add {', '.join(sorted(undeclared))} to `emits`, or do not send it")

    @rule("uses the channels that it declares")
    def uses_declared(self) -> None:
        used = self.trained.transcript.channels
        if not used:
            raise Broken(
                "nothing was sent over `session.wire`; all that the vendor sees must be sent over it"
            )
        others = variants(self.method)
        while (silent := self.method.sends - used) and (other := next(others, None)):
            trial = Trial.of(other, (), self.model, recorded=RECORDED, public=PUBLIC)
            if not trial.planned.skip_reason:
                used |= trial.train().transcript.channels
        if silent:
            raise NotApplicable(
                f"nothing was sent on {', '.join(sorted(silent))} with these parameters"
            )

    @rule("learns and predicts from what arrives over the wire, and from nothing beside it")
    def uses_what_arrives(self) -> str:
        trained = self.trained
        if (trained.scores == trained.scores[:1]).all():
            raise NotApplicable("it predicts the same for every example")
        sent = [message for message in trained.transcript.messages if message.sender == "customer"]
        training = {message.channel for message in sent if message.split == "train"}
        predicting = {message.channel for message in sent if message.split != "train"}
        if training == {Channel.MODEL}:
            if not torch.allclose(self.trial.handed_out(trained), trained.scores, atol=TOLERANCE):
                raise Broken(
                    "its predictions differ from those of the model that it releases; predict with the model "
                    "that `session.wire.release` sends"
                )
            return str(Channel.MODEL)
        if not predicting and Channel.MODEL not in training:
            raise Broken(
                "its scores differ between examples, but nothing was sent about them. Send what the vendor "
                "computes with by `session.wire.send`, and use the value that it returns"
            )
        idle = [f"training ({channel})" for channel in sorted(training) if self._idle(channel)]
        idle += [
            f"prediction ({channel})" for channel in sorted(predicting) if self._unasked(channel)
        ]
        if idle:
            raise Broken(
                f"with messages in random order, {', '.join(idle)} stays the same, so something bypasses the wire. "
                "Use the value that `session.wire.send` returns"
            )
        return ", ".join(sorted(training | predicting))

    def _idle(self, channel: Channel) -> bool:
        """Whether training gives the same result with a channel in random order."""
        try:
            other = self.trial.train(swapped=channel)
        except Exception:  # training that fails on other messages reads them
            return False
        return _close(other.scores, self.trained.scores, LITTLE_LEARNT)

    def _unasked(self, channel: Channel) -> bool:
        """Whether predictions are the same with a channel in random order."""
        tuned, dev, wire = self.trained.tuned, self.trial.inputs.tokens["dev"], self.trained.wire
        wire.swap(1, only=channel)
        try:
            return _close(tuned.predict(dev, "dev"), self.trained.scores, LITTLE)
        except Exception:
            return False
        finally:
            wire.swap(0)

    @rule("has its bytes counted in each direction")
    def counts_bytes(self) -> str:
        wire, messages = self.trained.wire, self.trained.transcript.messages
        senders = {message.sender for message in messages}
        counted = {"customer": wire.bytes_up, "vendor": wire.bytes_down}
        if not senders or not all(counted[sender] for sender in senders):
            raise Broken("send by `session.wire.send`, which counts; nothing else may cross")
        return f"{wire.bytes_up:,} up, {wire.bytes_down:,} down"

    @rule("predicts a finite score of each class for each example")
    def predicts(self) -> None:
        scores, inputs = self.trained.scores, self.trial.inputs
        expected = (len(inputs.tokens["dev"]), len(inputs.task.labels))
        if tuple(scores.shape) != expected:
            raise Broken(f"`predict` returned {tuple(scores.shape)} instead of {expected}")
        if not torch.isfinite(scores).all():
            raise Broken("`predict` returned scores that are not finite")

    @rule("predicts the same whatever the order of the examples")
    def ignores_order(self) -> None:
        if self.is_noisy:
            raise NotApplicable(
                "its predictions are noisy: the same examples get other scores each time"
            )
        tuned, dev = self.trained.tuned, self.trial.inputs.tokens["dev"]
        order = torch.arange(len(dev)).flip(0)
        if not _near(tuned.predict(dev.take(order), "dev"), self.trained.scores[order]):
            raise Broken(
                "an example's score depends on its position or on other examples; predict in evaluation "
                "mode, mask the padding, and do not use statistics of the batch"
            )

    @rule("does the same again with the same seeds")
    def repeats(self) -> None:
        if not _same(self.trained, self.trial.train()):
            raise Broken(
                "messages or predictions of a second run differ; draw noise from `session.noise`, "
                "take networks from `session.network()`, and use no other randomness"
            )

    @rule("draws its noise with the mechanism's seed")
    def draws_noise(self) -> str | None:
        if not _same(self.trained, self.trial.train(other_noise=True)):
            return None
        if self.is_noisy:
            raise Broken(
                "its predictions are noisy, but not by the mechanism's seed; draw noise from `session.noise`"
            )
        if self.method.claim() is None:
            raise NotApplicable("it claims no noise and draws none")
        raise Broken(
            "it makes a claim, but another seed of the mechanism changes nothing; "
            "draw noise from `session.noise`"
        )

    @rule("leaves the public model as it was")
    def spares_the_model(self) -> None:
        if fingerprint(self.trained.backbone) != fingerprint(self.trial.backbone):
            raise Broken(
                "`session.backbone.model`, the public model, was changed; train a copy: `session.network()`"
            )

    @rule("can be attacked by every attack that fits")
    def can_be_attacked(self) -> str:
        if self.record.status != "ok":
            raise Untried("it does not fine-tune to the end")
        broken = [leak for leak in self.record.leaks if leak.status not in ("ok", "skipped")]
        if broken:
            failures = [f"{leak.attack.name}: {leak.status}, {leak.reason}" for leak in broken]
            raise Broken(
                "messages must match the channel's docstring in leakboard.Channel; "
                + "; ".join(failures)
            )
        ran = sorted({leak.attack.name for leak in self.record.leaks if leak.status == "ok"})
        return ", ".join(ran) or "no attack fits"


def _close(scores: torch.Tensor, ordinary: torch.Tensor, little: float) -> bool:
    """Whether scores differ so little that hardly anything of what arrived can have been used."""
    if ordinary.shape[1] > 1:  # a number that is added to all classes says nothing
        scores, ordinary = (each - each.mean(1, keepdim=True) for each in (scores, ordinary))
    return bool((scores - ordinary).abs().mean() <= little * ordinary.std())


def _near(scores: torch.Tensor, others: torch.Tensor) -> bool:
    return torch.allclose(scores, others, atol=TOLERANCE, equal_nan=True)


def _same(one: Trained, other: Trained) -> bool:
    same = torch.allclose(one.scores, other.scores, rtol=0, atol=0, equal_nan=True)
    return same and same_messages(one.transcript.messages, other.transcript.messages)
