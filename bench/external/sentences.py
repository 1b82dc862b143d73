"""Sentences for somebody who decides: what was recorded, and what a provider can read of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakboard.bench.contracts import Channel, Estimate, Goal, Leak
from leakboard.bench.exchange import Manifest
from leakboard.bench.scoring import advantage_low

CHANNELS = {
    Channel.TOKENS: "the tokens that are sent",
    Channel.REPRESENTATIONS: "the vector sent for each word",
    Channel.ACTIVATIONS: "the activations of the model",
    Channel.RECOMPUTED: "activations that the provider computes again",
    Channel.GRADIENTS: "gradients",
    Channel.LOGIT_GRADIENTS: "gradients of the answers",
    Channel.CUT_GRADIENTS: "gradients of the vectors",
    Channel.ADAPTER_GRADIENTS: "gradients of the adapters",
    Channel.PARAMETERS: "the adapters that are sent",
    Channel.LABELS: "the labels that are sent",
    Channel.LOGITS: "the model's answers",
    Channel.EMULATOR: "the emulator that the customer holds",
    Channel.MODEL: "the model that is released",
}
READ = {
    Goal.INVERSION: ("your texts", "texts"),
    Goal.REIDENTIFICATION: ("which of several known texts you sent", "texts"),
    Goal.LABEL: ("your labels", "labels"),
    Goal.ATTRIBUTE: ("{} of the authors", "attributes"),
}
"""What is read, and the word for it in a piece of advice."""
SUCCESSES = {
    "token accuracy": "recovers {} of the tokens",
    "label token accuracy": "recovers {} of the tokens",
    "top-1 accuracy": "recognises {} of the texts",
    "AUC": "tells {} of pairs of examples apart",
    "AUC (sign-free)": "tells {} of pairs of examples apart",
}
"""What an attack does by its metric; by default, it guesses examples correctly."""
MOSTLY = 0.8
"""The advantage from which on a thing is called read, and not read in part."""
MOST_LABELS = 10
"""Largest number of labels that are named."""
EPOCHS = {None: "", 0: "", 1: " in one epoch"}


def attack_sentences(leaks: Sequence[Leak]) -> list[str]:
    """What a provider can read, how certain that is, and what to do next; nothing if nothing was scored.

    The worst moment of a training is not used where there are other views, since it is the largest of many.
    """
    scored = [leak for leak in leaks if leak.success is not None and leak.channel is not None]
    steady = [leak for leak in scored if leak.view != "worst"] or scored
    if not steady:
        return []
    strongest: dict[tuple[Goal, str], Leak] = {}
    for leak in sorted(steady, key=_advantage, reverse=True):
        if (advantage_low(leak) or 0.0) > 0 and leak.goal in READ:
            strongest.setdefault((leak.goal, leak.attribute or ""), leak)
    if not strongest:
        best = max(steady, key=_advantage)
        tried = len({leak.attack.name for leak in steady})
        return [
            f"No attack is shown to read anything from this recording; the strongest of {tried} is {best.attack.name}.",
            "That is no evidence of privacy: another attack, or more examples, may succeed.",
            "Next: attack the same training without protection, and check that these attacks work there.",
        ]
    found = [*strongest.values()]
    whole = [_subject(leak) for leak in found if _advantage(leak) >= MOSTLY]
    part = [_subject(leak) for leak in found if _advantage(leak) < MOSTLY]
    read = [*whole, *([f"a part of {joined(part)}"] if part else [])]
    words = dict.fromkeys(READ[leak.goal][1] for leak in found)
    return [
        f"The provider can read {joined(read)}.",
        _evidence(found[0]),
        f"Next: hide {joined([*words])} before you send them (`leakboard choose` compares defenses), then record and "
        "attack again.",
    ]


def label_sentences(leaks: Sequence[Leak], names: Sequence[str]) -> list[str]:
    """How the names of labels were numbered, and the attack that suggests another numbering.

    Args:
        names: those that were numbered in sorted order.
    """
    found = []
    if names:
        numbered = [f"{name} = {i}" for i, name in enumerate(names[:MOST_LABELS])]
        more = ", …" if len(names) > MOST_LABELS else ""
        found.append(f"Labels are numbered in sorted order: {', '.join(numbered)}{more}.")
    guesses = [
        (leak.success, leak.attack.name)
        for leak in leaks
        if leak.goal == Goal.LABEL and leak.metric == "accuracy" and leak.success is not None
    ]
    # Chance is the share of the largest class, which an attack without any information need not reach.
    below = [each for each in guesses if each[0].high < each[0].chance / 2]
    if below:
        success, name = min(below, key=lambda each: each[0].value)
        found.append(
            f"The attack {name} guesses only {percent(success.value)} of the labels correctly, clearly less than chance "
            f"({percent(success.chance)}): the recording may number its classes differently."
        )
    return found


def recording_sentences(manifest: Manifest, folder: Path) -> list[str]:
    """What a recording holds, what it lacks, and what to do next."""
    channels = dict.fromkeys(CHANNELS[sent.channel] for sent in manifest.messages)
    epochs = manifest.training.epochs if manifest.training else None
    during = EPOCHS.get(epochs, f" in {epochs} epochs")
    examples = next(iter(manifest.splits.values()))
    return [
        f"The recording holds what passed between you and a provider about {examples} training examples{during}: "
        f"{joined([*channels])}.",
        _completeness(manifest),
        f"Next: `leakboard attack {folder} --model {manifest.model} --truth FILE` says what the provider can read of it."
        if manifest.model_hash
        else "Next: name the public model by base=… and record again; without it, only some attacks can run.",
    ]


def _completeness(manifest: Manifest) -> str:
    if manifest.cut_short:
        return f"It holds only the beginning of the training, which ended early ({manifest.cut_short})."
    if manifest.dropped:
        size = sum(manifest.dropped.values()) / 1e6
        return f"It lacks {size:.0f} MB that exceed the limit; raise it with record=lb.Recording(megabytes=…)."
    if manifest.left_out:
        lacking = [f"{n} {what}" for what, n in manifest.left_out.items()]
        return f"It lacks {joined(lacking)}."
    return "It is complete: it holds every pass of the training for these examples."


def _advantage(leak: Leak) -> float:
    return leak.above or 0.0


def _subject(leak: Leak) -> str:
    return READ[leak.goal][0].format(leak.attribute)


def _evidence(leak: Leak) -> str:
    success = leak.success
    assert success is not None
    does = SUCCESSES.get(leak.metric, "guesses {} of the examples correctly").format(
        percent(success.value)
    )
    return (
        f"The attack {leak.attack.name} {does} ({interval(success)}; guessing: {percent(leak.level or 0.0)}; {success.n} "
        f"examples) from {CHANNELS[leak.channel] if leak.channel else 'nothing that is sent'}."
    )


def interval(success: Estimate) -> str:
    """The 95 % interval of a share, in words."""
    return f"95 % interval {percent(success.low)} to {percent(success.high)}"


def percent(share: float) -> str:
    """A share as whole percent."""
    return f"{share:.0%}".replace("%", " %")


def joined(words: Sequence[str]) -> str:
    """Words as an enumeration: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
