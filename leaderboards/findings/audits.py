"""Findings about audits of released models: proven and claimed ε."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from leakboard.bench.contracts import Claim, Leak, Record, attack_id, grouped
from leakboard.bench.scoring import UNTUNED, provable, proven
from leakboard.leaderboards.findings.finding import Finding, task_name
from leakboard.leaderboards.tables import (
    ResultsTable,
    Setting,
    display_name,
    format_number,
    mean_interval,
)

Audits = Sequence[tuple[Record, Leak]]


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
            own = {} if setting.undefended else _audits(setting)
            claim = setting.first.claim
            if own and claim is not None and claim.epsilon_of_members is not None:
                attack = max(own, key=lambda name: _most(open_, name, claim))
                yield from _finding(
                    setting, attack, own[attack], claim, _most(open_, attack, claim)
                )


def _audits(setting: Setting) -> dict[str, Audits]:
    """Audits of a setting, by attack."""
    every = [(record, leak) for record in setting.records.values() for leak in record.leaks]
    audited = (audit for audit in every if audit[1].epsilon is not None)
    return {**grouped(audited, lambda audit: attack_id(audit[1].attack))}


def _most(settings: Sequence[Mapping[str, Audits]], attack: str, claim: Claim) -> float:
    """Largest mean ε that an attack proves for an unprotected setting, at the δ of a claim; 0 without a setting."""
    means = [0.0]
    for own in settings:
        bounds = [proven(leak, claim) for _, leak in own.get(attack, ())]
        means.append(fmean([bound or 0.0 for bound in bounds] or [0.0]))
    return max(means)


def _finding(
    setting: Setting, attack: str, own: Audits, claim: Claim, unprotected: float
) -> Iterator[Finding]:
    claimed = claim.epsilon_of_members
    assert claimed is not None
    ceiling = fmean(provable(record, leak) or 0.0 for record, leak in own)
    if min(ceiling, unprotected) <= claimed:
        return
    bounds = [leak.epsilon or 0.0 for _, leak in own]
    found = mean_interval(bounds)
    unit = " of an author" if claim.unit == "author" else ""
    verdict = "contradicts" if found.value > claimed else "does not contradict"
    leak = own[0][1]
    sentence = (
        f"An audit {verdict} {display_name(setting.defense)}'s ε = {claimed:g}{unit} on "
        f"{task_name(setting.task)}: it proves ε ≥ {format_number(found.value)}, and ε ≥ {format_number(unprotected)} "
        f"without the noise ({leak.attack.name})."
    )
    yield Finding(
        rule="audits",
        sentence=sentence,
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
