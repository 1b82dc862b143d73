"""What a reader should know of a plan before it is run, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.bench.running.plan import Plan, Planned
from leakboard.bench.scoring import cannot_fail, one_run
from leakboard.bench.tasks import Task


def notes(plan: Plan) -> list[str]:
    """What was added, audits that cannot fail, and where more is planted than there are texts; each once.

    Of a claim that the coins by themselves do not reach the whole profile is computed, which takes an accountant
    seconds.
    """
    found = plan.additions()
    for planned in plan.cells:
        if not planned.refused and planned.cell.shadow is None:
            found += _of_cell(planned, plan.tasks[planned.cell.data_hash])
    return list(dict.fromkeys(found))


def _of_cell(planned: Planned, task: Task) -> Iterator[str]:
    plant, texts = planned.cell.plant, len(task.splits["train"])
    if plant is None:
        return
    texts = min(texts, planned.cell.limit or texts)
    # Each coin keeps an example out half of the time: of the texts, or of canaries beside them.
    heads, strange = plant.audit // 2, plant.candidates == "strange"
    lines = len(plant.canaries) * plant.each * sum(plant.copies) + (heads if strange else 0)
    if lines > texts:
        yield (
            f"planted: {lines:,} lines of canaries beside {texts:,} texts of {task.name}: the model sees more of "
            "these than of its own texts, which shows what an attack can find, and little of what it finds of texts"
        )
    asked = any(Goal.MEMBERSHIP in pairing.goals for pairing in planned.pairings)
    if asked and plant.audit > 1 and plant.per_author is None:
        with suppress(LeakboardError):  # which the cell tells as it is run
            yield from _audit(planned, plant.audit, texts + lines - (0 if strange else heads))


def _audit(planned: Planned, coins: int, examples: int) -> Iterator[str]:
    for whole in (False, True):
        claim = planned.defense.promises(examples, planned.cell.train, whole)
        most = one_run.ceiling(coins, *one_run.claim_terms(claim))
        if not cannot_fail(claim, most):
            return
    assert claim is not None
    yield (
        f"cannot fail: an audit of {coins:,} coins could prove an epsilon of at most {most:.1f} of "
        f"{planned.named}, which claims {claim.epsilon_of_members:g}: no outcome could contradict it; "
        "raise plant.audit"
    )
