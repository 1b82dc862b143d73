"""Findings that are no comparison of two settings: what a budget buys, what halving costs, idle attacks, and audits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from statistics import fmean

from leakboard.bench.contracts import Claim, Goal, Leak, Record, attack_id, grouped
from leakboard.bench.scoring import UNTUNED, provable, proven, proves_more
from leakboard.leaderboards.findings.finding import Finding, listing, place_name, task_name
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    Interval,
    Result,
    ResultsTable,
    Setting,
    choose,
    display_name,
    format_interval,
    format_number,
    format_percent,
    format_points,
    mean_interval,
)

MUCH = 0.5
"""A defense that hides more than this share within the budget gets a separate sentence."""
Audits = Sequence[tuple[Record, Leak]]


def headlines(table: ResultsTable) -> Iterator[Finding]:
    """Findings for each goal about settings within the budget; tasks with little effect share one.

    Costs are means. Where nothing helps, the cheapest setting is told, unless `halving` tells of it.
    """
    within = f"within {BUDGET:g} points,"
    least = table.least_cost_of_halving.items()
    told = {(at[0], id(half.setting.setting)) for at, half in least if half.setting}
    for goal in Goal:
        own, word = table.select(goal=goal), GOAL_WORDS[goal]
        places = grouped(own, lambda row: (row.setting.task, row.setting.model))
        choices = [
            (place_name(*at), choose(rows, at[0], goal.value)) for at, rows in places.items()
        ]
        little = {at: one for at, one in choices if one and 1 - one.leakage.value <= MUCH}
        if little:
            first = min(little, key=lambda at: little[at].leakage.value)
            best = little[first]
            rows = [one.setting for one in [best, *little.values()] if one.setting]
            if len(little) > 1:
                which = f"on {first}{'' if rows[0].setting.trials else ', not tuned'}"
            else:
                which = best.names
                rows += best.equals
            words = (
                f"{within} the most that is hidden of {word} on {listing(little)} is "
                f"{format_percent(1 - best.leakage.value)} ({which})."
            )
            yield Finding.of("headlines", words, "leakage", best.leakage, rows)
        for at, one in choices:
            row, near = one.setting, one.nearest
            if row and at not in little:
                words = f"{one.names}, hides {format_percent(1 - one.leakage.value)} of the {word} on {at}, for {_cost(row)}."
                yield Finding.of("headlines", words, "leakage", one.leakage, [row, *one.equals])
            elif near and near.cost.low > BUDGET and (goal, id(near.setting)) not in told:
                words = (
                    f"{within} nothing measured clearly protects {word} on {at}: the cheapest, "
                    f"{near.setting.choice}, leaks {format_percent(near.leakage.value)} for {_cost(near)}."
                )
                yield Finding.of("headlines", words, "cost", near.cost, [near])


def halving(table: ResultsTable) -> Iterator[Finding]:
    """Findings for each goal and task about the smallest cost of hiding half, if it is above the budget.

    A setting that learned nearly nothing is told as such.
    """
    order = list(Goal)
    least = table.least_cost_of_halving
    for goal, task, model in sorted(least, key=lambda at: (order.index(at[0]), *at[1:])):
        cost, row = least[goal, task, model].value, least[goal, task, model].setting
        if row is None or cost.value <= BUDGET:
            continue
        what = f"half of the {GOAL_WORDS[goal]} on {place_name(task, model)}"
        costs, choice = f"costs {of_gain(row, cost)}", row.setting.choice
        if row.still_learns:
            words = f"Hiding {what} {costs} gained ({choice}, {hidden(table, row)}; {_ends(cost)})."
        else:
            words = f"No measured setting that still learns hides {what}: {choice}, {costs} ({_ends(cost)})."
        yield Finding.of("halving", words, "cost", cost, [row])


def idle(table: ResultsTable) -> Iterator[Finding]:
    """Findings for each goal about tasks on which no attack works without a defense."""
    for goal in Goal:
        own = table.select(goal=goal)
        certified = {row.setting.task for row in own if row.is_certified}
        rows = [
            row
            for row in own
            if row.setting.undefended
            and row.setting.task not in certified
            and not isnan(row.advantage.low)
        ]
        if not rows:
            continue
        most = max(rows, key=lambda row: row.advantage.value)
        words = (
            f"on {listing(task_name(r.setting.task) for r in rows)}, no protection of {GOAL_WORDS[goal]} can be judged: "
            f"even without any, `{most.attack}`, the strongest attack, reaches an advantage of only "
            f"{format_interval(most.advantage)}."
        )
        yield Finding.of("idle", words, "advantage", most.advantage, [most, *rows])


def of_gain(row: Result, cost: Interval) -> str:
    """'22.0 of the 35.5 points'."""
    return f"{format_points(cost.value)} of the {format_points(row.gain.value)} {row.setting.unit}"


def hidden(table: ResultsTable, row: Result) -> str:
    """'hides 54 %', and what it hides in another training if that decided (see `curves`)."""
    alike = (one for one in table.select(goal=row.goal) if one.setting is row.setting)
    own = next(one for one in alike if one.attribute == row.attribute)
    shares = dict.fromkeys(format_percent(1 - one.leakage.value) for one in (own, row))
    return f"hides {', another training '.join(shares)}"


def _cost(row: Result) -> str:
    """'4.1 points (3.0 to 5.2)'."""
    return f"{format_points(row.cost.value)} {row.setting.unit} ({_ends(row.cost)})"


def _ends(cost: Interval) -> str:
    return f"{format_points(cost.low)} to {format_points(cost.high)}"


def audits(table: ResultsTable) -> Iterator[Finding]:
    """A finding for each claimed ε that an audit could refute.

    A claim is left out if a perfect attacker, or the same attack on an unprotected model, does not exceed it. All
    settings of a group are audited by the attack that proves most without protection, so that the choice does not
    depend on the protected settings.
    """
    for group in table.groups:
        open_ = [
            _audits(setting)
            for setting in group.settings
            if setting.undefended and setting.defense != UNTUNED
        ]
        for setting in group.settings:
            by_attack = {} if setting.undefended else _audits(setting)
            claim = setting.first.claim
            claimed = claim.epsilon_of_members if claim else None
            if not by_attack or claim is None or claimed is None:
                continue
            plain = (one for own in open_ for name in by_attack for one in own.get(name, ()))
            if not any(proves_more(leak, claim, claimed) for _, leak in plain):
                continue  # nor does any mean, and means take long
            attack = max(by_attack, key=lambda name: _most(open_, name, claim))
            own, unprotected = by_attack[attack], _most(open_, attack, claim)
            ceiling = fmean(provable(record, leak) or 0.0 for record, leak in own)
            if min(ceiling, unprotected) <= claimed:
                continue
            found = mean_interval([leak.epsilon or 0.0 for _, leak in own])
            unit = " of an author" if claim.unit == "author" else ""
            verdict = "contradicts" if found.value > claimed else "does not contradict"
            leak = own[0][1]
            yield Finding(
                rule="audits",
                sentence=f"An audit {verdict} {display_name(setting.defense)}'s ε = {claimed:g}{unit} on "
                f"{task_name(setting.task)}: it proves ε ≥ {format_number(found.value)}, and "
                f"ε ≥ {format_number(unprotected)} without the noise ({leak.attack.name}).",
                task=setting.task,
                model=setting.model,
                metric="lower bound of ε",
                value=found,
                seeds=len(own),
                n=leak.units,
                attack=leak.attack.name,
                settings=(setting.label,),
                keys=tuple(record.key for record, _ in own),
            )


def _audits(setting: Setting) -> dict[str, Audits]:
    """Audits of a setting, by attack."""
    every = [(record, leak) for record in setting.records.values() for leak in record.leaks]
    audited = (audit for audit in every if audit[1].epsilon is not None)
    return {**grouped(audited, lambda audit: attack_id(audit[1].attack))}


def _most(settings: Sequence[Mapping[str, Audits]], attack: str, claim: Claim) -> float:
    """Largest mean ε that an attack proves for an unprotected setting, at the δ of a claim; 0 without a setting."""
    every = [[proven(leak, claim) or 0.0 for _, leak in own.get(attack, ())] for own in settings]
    return max([0.0, *(fmean(bounds) for bounds in every if bounds)])
