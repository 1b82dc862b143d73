"""Combinations: defenses of different stages of one fine-tuning, as one defense.

What defenses have in common is the stage that they change: one protects the inputs that are sent, one decides which
messages training exchanges, one changes the labels. A combination takes each stage from the part that declares it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

from pydantic import create_model, model_validator

from leakboard.bench.contracts import Channel, Claim, Goal, Objective, TrainSettings, digest
from leakboard.bench.exchange import Tuned
from leakboard.bench.methods.defense import Defense, Stage
from leakboard.bench.methods.method import Conditions, Source

if TYPE_CHECKING:
    from numpy.random import Generator

    from leakboard.bench.backbones import Backbone, Ragged, Tokens
    from leakboard.bench.exchange import Session

PLUS = "+"
"""Joins the names of the parts to that of the combination."""
STAGES: tuple[Stage, ...] = get_args(Stage)


class Combination(Defense):
    """Several defenses at once, each of which protects one stage of a fine-tuning.

    `combine` makes a subclass for each choice of defenses; its parameters are those of the parts.
    """

    made_of: ClassVar[tuple[type[Defense], ...]]
    names: ClassVar[tuple[Mapping[str, str], ...]]
    """For each part the name here of each of its parameters."""
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification"})

    @model_validator(mode="after")
    def _parts_are_valid(self) -> Self:
        assert self.parts
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Classes are made by `combine`, so that they have no place to be imported from.
        return _restore, (self.made_of, {n: getattr(self, n) for n in self.model_fields_set})

    @property
    def parts(self) -> tuple[Defense, ...]:
        return tuple(
            cls(**{own: getattr(self, n) for own, n in names.items() if n in self.model_fields_set})
            for cls, names in zip(self.made_of, self.names, strict=True)
        )

    @property
    def stages(self) -> dict[Stage, Defense]:
        """The parts by their stages."""
        return {part.stage: part for part in self.parts if part.stage}

    @property
    def sends(self) -> frozenset[Channel]:
        return _channels({stage: part.sends for stage, part in self.stages.items()})

    @property
    def undefended(self) -> bool:
        return all(part.undefended for part in self.parts)

    @property
    def head_only(self) -> bool:
        return any(part.head_only for part in self.parts)

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        """All parts with their protection off: such labels are the true ones, and such training is plain."""
        if self.undefended or _conflict(self.made_of):
            return ()
        off: list[Defense] = []
        for stage, part in self.stages.items():
            if stage != "labels":
                off += [part] if part.undefended else part.twins(objective)[:1]
        return (off[0],) if len(off) == 1 else (_combined(off),)

    def skip(self, conditions: Conditions) -> str | None:
        others = frozenset(self.stages)
        reasons = (part.skip_combined(others) or part.skip(conditions) for part in self.parts)
        return _conflict(self.made_of) or next(filter(None, reasons), None)

    def tried(
        self, settings: TrainSettings, n: int, classes: int
    ) -> Sequence[Mapping[str, object]]:
        leader = self.stages.get("training") or self.parts[0]
        return leader.tried(settings, n, classes)

    @classmethod
    def code(cls) -> str:
        return digest([part.code() for part in cls.made_of])[:16]

    @property
    def has_claim(self) -> bool:
        return any(part.has_claim for part in self.parts)

    def claim(self) -> Claim | None:
        stated = [
            (claim, names)
            for part, names in zip(self.parts, self.names, strict=True)
            if (claim := part.claim())
        ]
        if len(stated) < 2:
            return stated[0][0] if stated else None
        return Claim(
            guarantee="; and ".join(claim.guarantee for claim, _ in stated),
            parameters={
                names.get(name, name): value
                for claim, names in stated
                for name, value in claim.parameters.items()
            },
            covers="; and ".join(claim.covers for claim, _ in stated),
        )

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        inputs = self.stages.get("inputs")
        return inputs.simulate(base, tokens, cut, rng) if inputs else None

    def fine_tune(self, session: Session) -> Tuned:
        stages = self.stages
        inputs, training = stages.get("inputs"), stages.get("training")
        if "labels" in stages:  # first: no part may see the labels that another one hides
            session.labels = stages["labels"].changed_labels(session)
        if training is None:
            assert inputs is not None
            return inputs.fine_tune(session)
        if inputs is not None:
            session.inputs = inputs.protected_inputs(session)
        return training.fine_tune(session)


def combine(*parts: type[Defense]) -> type[Combination]:
    """The class of a combination; the order of the parts does not matter.

    Parts that contradict each other are a class as well, which is skipped with the reason.
    """
    return _class(tuple(sorted(parts, key=_place)))


def _restore(parts: tuple[type[Defense], ...], given: dict[str, Any]) -> Combination:
    return combine(*parts)(**given)


def _place(cls: type[Defense]) -> tuple[int, str]:
    return (STAGES.index(cls.stage) if cls.stage else len(STAGES)), cls.name


@cache
def _class(parts: tuple[type[Defense], ...]) -> type[Combination]:
    names: list[dict[str, str]] = []
    fields: dict[str, Any] = {}
    for cls in parts:
        own = {n: n if n not in fields else f"{_word(cls)}_{n}" for n in cls.model_fields}
        fields |= {here: _field(cls, name) for name, here in own.items()}
        names.append(own)
    made: type[Combination] = create_model(
        PLUS.join(cls.name for cls in parts), __base__=Combination, __doc__=_doc(parts), **fields
    )
    first, *others = (cls.combined_name or cls.display_name or cls.name for cls in parts)
    declared = {
        "made_of": parts,
        "names": tuple(names),
        "name": PLUS.join(cls.name for cls in parts),
        "display_name": " + ".join([first, *map(_lower, others)]),
        "source": Source("Leakboard", f"combination of {' and '.join(map(_word_of, parts))}"),
        "version": sum(cls.version - 1 for cls in parts) + 1,
        "knob": next((own[c.knob] for c, own in zip(parts, names, strict=True) if c.knob), None),
        "protects": frozenset[Goal]().union(*({*c.protects, *c.measured_by} for c in parts)),
        "circumstances": _renamed(parts, names, "circumstances"),
        "younger": _renamed(parts, names, "younger"),
        "least_blocks": max(cls.least_blocks for cls in parts),
        "emits": _channels({cls.stage: cls.emits for cls in parts if cls.stage}),
    }
    for name, value in declared.items():
        setattr(made, name, value)
    return made


def _channels(by_stage: Mapping[Stage, frozenset[Channel]]) -> frozenset[Channel]:
    """Channels of a combination, from those of its parts: training decides, and vectors take the place of tokens."""
    inputs, training = by_stage.get("inputs"), by_stage.get("training")
    if training is None:
        return inputs or frozenset()
    sent = training - {Channel.MODEL}
    return sent if inputs is None else sent - {Channel.TOKENS} | {Channel.REPRESENTATIONS}


def _conflict(parts: Sequence[type[Defense]]) -> str | None:
    """Reason why the messages of some defenses contradict each other, or None."""
    for cls in parts:
        if cls.stage is None:
            return f"{cls.name} cannot be combined: it decides all messages of a training itself"
    for i, cls in enumerate(parts):
        other = next((each for each in parts[:i] if each.stage == cls.stage), None)
        if other is not None:
            return f"{other.name} and {cls.name} both decide the {cls.stage} of one training"
    return None


def _combined(parts: Sequence[Defense]) -> Defense:
    cls = combine(*map(type, parts))
    by_class = {type(part): part for part in parts}
    given = {
        names[name]: getattr(by_class[own], name)
        for own, names in zip(cls.made_of, cls.names, strict=True)
        for name in by_class[own].model_fields_set
    }
    return cls(**given)


def _field(cls: type[Defense], name: str) -> tuple[Any, Any]:
    field = cls.model_fields[name]
    return field.annotation, field


def _renamed(
    parts: Sequence[type[Defense]], names: Sequence[Mapping[str, str]], declared: str
) -> frozenset[str]:
    pairs = zip(parts, names, strict=True)
    return frozenset(own[name] for cls, own in pairs for name in getattr(cls, declared))


def _word(cls: type[Defense]) -> str:
    return cls.name.replace("-", "_")


def _word_of(cls: type[Defense]) -> str:
    return cls.display_name or cls.name


def _doc(parts: Sequence[type[Defense]]) -> str:
    words = [cls.combined_name or cls.display_name or cls.name for cls in parts]
    first, *others = words
    return f"Combine {' and '.join([first, *map(_lower, others)])} in one fine-tuning."


def _lower(name: str) -> str:
    """'randomised response', but 'DP-SGD'."""
    return name[0].lower() + name[1:] if name[1:2].islower() else name
