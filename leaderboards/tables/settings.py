"""Settings: all seeds of a defense with its parameters on one task, model, cut and training."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from statistics import fmean
from typing import Any

from leakboard.bench.contracts import CORRELATIONS, Goal, Leak, Record
from leakboard.bench.records import ALIKE, canonical_json, setup_digits
from leakboard.bench.scoring import (
    UNTUNED,
    gain,
    is_claim_tuned_on_private,
    level,
    twin_settings,
)
from leakboard.leaderboards.tables.conditions import describe_groups, group_records
from leakboard.leaderboards.tables.defenses import (
    class_of,
    display_name,
    format_parameter,
    labels_of,
    other_params,
)
from leakboard.leaderboards.tables.intervals import MISSING, Interval, mean_interval
from leakboard.leaderboards.tables.leakage import (
    Aim,
    Candidate,
    Readings,
    Strongest,
    by_aim,
    text_of,
)

NOT_REPRODUCED = "not reproduced"
"""Mark of submitted settings whose defense was not run again."""

ENOUGH = 3
"""Seeds from which on the utility decides which training of no protection costs are measured against."""
UNLEARNT = "its utility is not clearly above the untuned model's"


@dataclass(frozen=True)
class Setting:
    """All seeds of one setting.

    Attributes:
        group: digits that comparable settings share: task, model, data, planted secrets.
        conditions: the group in words, with the training if all share it, and the number of seeds.
        params: parameters of the defense as JSON.
        setup: digits of the data, training and versions.
        label: words that distinguish the settings of a defense in the group.
        records: records by seed.
    """

    group: str
    conditions: str
    task: str
    model: str
    cut: int
    defense: str
    params: str
    setup: str
    label: str
    knob: str
    knob_value: float
    records: Mapping[int, Record]

    @cached_property
    def undefended(self) -> bool:
        return all(record.undefended for record in self.records.values())

    @cached_property
    def is_reproduced(self) -> bool:
        """False if others submitted a record of it, and no cell of its defense was run again."""
        return not any(record.provenance.not_reproduced for record in self.records.values())

    @property
    def first(self) -> Record:
        return next(iter(self.records.values()))

    @property
    def name(self) -> str:
        """'SAP, η = 75': the defense as its authors write it, with its setting."""
        shown = display_name(self.defense)
        return shown if self.label == self.defense else f"{shown}, {self.label}"

    @property
    def choice(self) -> str:
        """The name without circumstances, which nobody chooses, such as 'missed'; with a mark if nothing was tuned."""
        params, outside = json.loads(self.params), class_of(self.defense).circumstances
        circumstances = {format_parameter(n, params[n]) for n in outside & params.keys()}
        parts = [part for part in self.name.split(", ") if part not in circumstances]
        return ", ".join(parts if self.trials else [*parts, "not tuned"])

    @property
    def metric(self) -> str:
        """Name of the metric of utility."""
        return self.first.utility_metric or "utility"

    @property
    def unit(self) -> str:
        """Unit of costs: 'points' of a percentage, or hundredths of a correlation."""
        metric = self.first.utility_metric
        return f"hundredths of {metric}" if metric in CORRELATIONS else "points"

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted(self.records))

    def on(self, seeds: Collection[int]) -> Setting:
        """The setting with some of its seeds."""
        return replace(self, records={s: r for s, r in self.records.items() if s in seeds})

    @cached_property
    def offer(self) -> tuple[object, ...]:
        """Identity of what a customer can choose: defense, parameters, cut and training on a task and model.

        Records of one offer may differ in circumstances, examples and versions. Epochs and rates belong to the offer.
        """
        training = self.first.cell.train.model_dump_json(exclude=set(ALIKE))
        choice = other_params(self.params, *class_of(self.defense).circumstances)
        return self.task, self.model, self.defense, choice, self.cut, training

    @cached_property
    def twins(self) -> frozenset[tuple[str, str]] | None:
        """Defenses and parameters with its protection off; None if its method is not installed."""
        return twin_settings((self.defense, self.params))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(record.key for record in self.records.values())

    @cached_property
    def readings(self) -> dict[Aim, dict[int, Readings]]:
        """Readings of all attacks by aim and seed."""
        return by_aim(self.records)

    @cached_property
    def worst(self) -> dict[Aim, dict[int, Readings]]:
        """Readings at the worst moment of each run."""
        return by_aim(self.records, worst=True)

    @property
    def leaks(self) -> list[Leak]:
        """Leaks of all seeds."""
        return [leak for record in self.records.values() for leak in record.leaks]

    def has_failed(self, goal: Goal) -> bool:
        """Whether an attack on this goal failed, and might have read more than the others."""
        return any(leak.goal == goal and leak.status == "failed" for leak in self.leaks)

    def met(self, candidate: Candidate) -> bool:
        """Whether the attack was run on it with these parameters, or skipped since it reads nothing that it sends."""
        name, params, *_ = candidate
        own = [leak for leak in self.leaks if leak.attack.name == name]
        return any(leak.status == "skipped" or text_of(leak.attack) == params for leak in own)

    @cached_property
    def trials(self) -> int:
        """Number of tuning trials of this setting; 0 if the suite gives its training settings."""
        return max(len(record.provenance.trials) for record in self.records.values())

    @cached_property
    def claim_note(self) -> str:
        """Note on a guarantee that does not cover the choice of the training; '' if there is none."""
        noted = any(is_claim_tuned_on_private(record) for record in self.records.values())
        return "the claim does not cover tuning, which used private examples" if noted else ""

    @cached_property
    def utility_by_seed(self) -> dict[int, float]:
        return {s: r.utility.value for s, r in self.records.items() if r.utility is not None}

    @cached_property
    def utility(self) -> Interval:
        values = list(self.utility_by_seed.values())
        known = next((r.utility for r in self.records.values() if r.utility is not None), None)
        return mean_interval(values, Interval.of(known) if known else MISSING)

    @cached_property
    def megabytes(self) -> float:
        """Megabytes sent per epoch of fine-tuning, both ways."""
        costs = [record.cost for record in self.records.values() if record.cost]
        sent = [(c.epoch_bytes_up or 0) + (c.epoch_bytes_down or 0) for c in costs]
        return fmean(sent) / 1e6 if sent else nan


def gain_over(mine: Setting, other: Setting) -> tuple[Interval, dict[int, float]]:
    """Difference in utility between two settings in points, paired by seed.

    Above the untuned model means above its `level`.

    Returns:
        The mean with its interval (Student's t, or over common examples if there is one common seed), and the
        difference for each common seed.
    """
    common = sorted(mine.utility_by_seed.keys() & other.utility_by_seed.keys())
    by_seed = {s: 100 * (mine.utility_by_seed[s] - level(other.records[s])) for s in common}
    of_cell = MISSING
    if len(common) == 1:
        _, low, high = gain(mine.records[common[0]], other.records[common[0]])
        of_cell = Interval(by_seed[common[0]], 100 * low, 100 * high)
    return mean_interval(list(by_seed.values()), of_cell), by_seed


@dataclass(frozen=True)
class Cost:
    """Points of utility lost against no protection.

    Attributes:
        points: mean with its interval; if missing, `reason` states why.
        by_seed: points for each common seed.
        is_equally_tuned: True if the setting had as many tuning trials as no protection.
    """

    points: Interval
    by_seed: Mapping[int, float]
    is_equally_tuned: bool
    reason: str = ""


@dataclass(frozen=True)
class Group:
    """Settings that may be compared with each other.

    Attributes:
        reference: no protection with the best utility, of the trainings with three seeds if there are any. More seeds
            of a weaker training do not make the others cheap.
        untuned: the untuned model.
    """

    settings: Sequence[Setting]
    reference: Setting | None
    untuned: Setting | None

    @cached_property
    def gain(self) -> Interval:
        """Points that no protection gains over the untuned model; missing if they share no seed."""
        if self.reference is None or self.untuned is None:
            return MISSING
        return gain_over(self.reference, self.untuned)[0]

    def cost(self, setting: Setting) -> Cost:
        """Cost of a setting; missing if it is not clearly better than the untuned model."""
        if self.reference is None:
            return Cost(MISSING, {}, False, "nothing unprotected was measured beside it")
        alike = setting.trials == self.reference.trials
        if setting.utility.is_missing:
            return Cost(MISSING, {}, alike, "no utility was measured")
        if self.untuned is None:
            return Cost(MISSING, {}, alike, "the untuned model was not measured beside it")
        if self.gain.is_missing:
            return Cost(MISSING, {}, alike, "no protection shares no seed with the untuned model")
        above, common = gain_over(setting, self.untuned)
        if not common:
            return Cost(MISSING, {}, alike, "it shares no seed with the untuned model")
        if above.lowest <= 0:
            return Cost(MISSING, {}, alike, UNLEARNT)
        lost, by_seed = gain_over(self.reference, setting)
        if not by_seed:
            return Cost(MISSING, {}, alike, "it shares no seed with no protection")
        return Cost(lost, by_seed, alike)


def place_of(setting: Setting) -> tuple[object, ...]:
    """What a setting shares with its twin: data, model and cut."""
    cell = setting.first.cell
    return cell.data_hash, cell.model_hash, cell.cut


def twin_of(
    setting: Setting,
    aim: Aim,
    undefended: Sequence[Setting],
    attacked: Mapping[int, Mapping[Aim, Strongest]],
) -> tuple[Strongest | None, tuple[str, ...]]:
    """The strongest attack on the twin, and the keys of its records; an undefended setting is its own twin.

    The twin is the defense with protection off, as its class names it, on the same data, model and cut. Twins with
    equal training are preferred, then those of the same group, then the one with most common seeds, and then the one
    that leaks most.
    """
    mine = attacked[id(setting)][aim]
    if setting.undefended:
        return mine, setting.keys

    def preference(one: Setting) -> tuple[bool, bool, int, float, tuple[str, ...]]:
        theirs = attacked[id(one)][aim]
        in_group = one.group == setting.group
        is_alike = one.first.cell.train == setting.first.cell.train
        common = theirs.candidates.keys() & mine.candidates.keys()
        return in_group and is_alike, in_group, len(common), theirs.advantage.value, one.keys

    near = [
        one
        for one in undefended
        if aim in attacked[id(one)]
        and (one.is_reproduced or not setting.is_reproduced)
        and (
            one.defense == setting.defense
            if setting.twins is None
            else next(iter(one.twins or [(one.defense, one.params)])) in setting.twins
        )
    ]
    best = max(near, key=preference, default=None)
    return (attacked[id(best)][aim], best.keys) if best else (None, ())


def groups_of(records: Iterable[Record]) -> list[Group]:
    """Groups of comparable settings, those with most defenses first; shadow models are left out."""
    together = group_records([record for record in records if record.cell.shadow is None])
    words = describe_groups(together)
    groups = [_group(digits, words[digits], own) for digits, own in together.items()]
    return sorted(groups, key=lambda group: -len({setting.defense for setting in group.settings}))


def _group(digits: str, words: str, records: Sequence[Record]) -> Group:
    found: dict[tuple[Any, ...], dict[int, Record]] = {}
    for record in records:
        cell = record.cell
        params, train = (canonical_json(x) for x in (cell.defense.params, cell.train.model_dump()))
        where = cell.cut, cell.defense.name, params, setup_digits(cell), train
        own = found.setdefault(where, {})
        # Of two records of one seed, the key decides, and not the order of folders.
        own[cell.seed] = min(own.get(cell.seed, record), record, key=lambda one: one.key)
    names = ("cut", "defense", "params", "setup", "train")
    rows: list[dict[Hashable, Any]] = [dict(zip(names, where, strict=True)) for where in found]
    cells = zip(rows, found.values(), strict=True)
    settings = [
        Setting(
            group=digits,
            conditions=words,
            task=records[0].cell.task,
            model=records[0].cell.model,
            cut=row["cut"],
            defense=row["defense"],
            params=row["params"],
            setup=row["setup"],
            label=label + _mark(by_seed.values()),
            knob=knob,
            knob_value=value,
            records=dict(sorted(by_seed.items())),
        )
        for (label, knob, value), (row, by_seed) in zip(labels_of(rows), cells, strict=True)
    ]
    measured = [setting for setting in settings if not setting.utility.is_missing]
    open_ = [setting for setting in measured if setting.undefended and setting.defense != UNTUNED]
    plain = [setting for setting in open_ if setting.defense == "none"] or open_
    reference = max(
        plain,
        key=lambda setting: (
            setting.is_reproduced,
            min(len(setting.seeds), ENOUGH),
            setting.utility.value,
            setting.keys,
        ),
        default=None,
    )
    untuned = max(
        (setting for setting in measured if setting.defense == UNTUNED),
        key=lambda setting: (len(setting.seeds), setting.keys),
        default=None,
    )
    return Group(settings, reference, untuned)


def _mark(records: Iterable[Record]) -> str:
    """Mark for the label of a setting that was not reproduced, or an empty string."""
    marked = any(record.provenance.not_reproduced for record in records)
    return f" ({NOT_REPRODUCED})" if marked else ""
