"""Records follow from their raw guesses."""

from __future__ import annotations

import numpy as np
from records import leak, record

from leakboard.bench.contracts.threat import Goal
from leakboard.bench.scoring.rescoring import rescore


def test_what_a_released_model_remembers_is_scored_again():
    from leakboard.bench.scoring import GAINED, memory, one_run
    from leakboard.bench.tasks import planting

    ranks, member = list(range(2, 42, 2)), [0, 1, 0, 1, 0] * 4
    auc = one_run.auc(np.array(ranks) / 2, np.array(member, bool))
    epsilon = one_run.audit(np.array(ranks) / 2, np.array(member, bool))
    audit = {"epsilon": epsilon, "epsilon_ceiling": one_run.ceiling(20)}
    bits = planting.CEILING - np.log2(np.array([2, 20, 2000]) / 2)
    members_leak = leak(
        attack="membership", goal=Goal.MEMBERSHIP, **audit,
        raw={"twice_rank": ranks, "member": member},
    ).model_copy(update={"success": auc, "units": 20, "metric": "AUC"})  # fmt: skip
    canaries = leak(
        attack="canary-exposure", goal=Goal.MEMORISATION, ceiling=planting.CEILING,
        raw={"twice_rank": [2, 20, 2000]},
    ).model_copy(update={"success": memory.estimate(bits, "exposure"), "units": 3, "metric": "exposure"})  # fmt: skip
    gains = memory.estimate(bits - np.array([1.0, 0, 0]), GAINED)
    gained = leak(
        attack="canary-exposure", goal=Goal.MEMORISATION, ceiling=planting.CEILING,
        raw={"twice_rank": [2, 20, 2000], "twice_rank_before": [10**6, 2 * 10**6, 2 * 10**6]},
    ).model_copy(update={"success": gains, "units": 3, "metric": GAINED})  # fmt: skip
    hit = leak(attack="canary-exposure", goal=Goal.MEMORISATION, raw={"hit": [1, 0, 1]}).model_copy(
        update={
            "success": memory.estimate(np.array([1.0, 0, 1]), "extraction"),
            "units": 3,
            "metric": "extracted",
        }
    )
    few = leak(attack="membership", goal=Goal.MEMBERSHIP).model_copy(
        update={
            "success": one_run.tpr_at(memory.LOW, np.array(ranks) / 2, np.array(member, bool)),
            "units": 20,
            "metric": "TPR at 1% FPR",
        }
    )
    good = record(leaks=[members_leak, canaries, gained, hit, few], utility=None)
    assert rescore(good).mismatches == []
    assert rescore(good).numbers == 5 * 7 + 2
    lied = [
        members_leak.model_copy(update={"epsilon": epsilon + 0.1}),
        members_leak.model_copy(update={"epsilon_ceiling": 99.0}),
        canaries.model_copy(update={"ceiling": 100.0}),
        hit.model_copy(update={"raw": {"hit": [1, 0, 0]}}),
        few.model_copy(update={"epsilon": 1.0}),
    ]
    for one in lied:
        leaks = [one if _alike(one, own) else own for own in good.leaks]
        assert leaks != good.leaks
        assert rescore(good.model_copy(update={"leaks": leaks})).mismatches, one.attack.name


def _alike(one, other):
    return (one.attack, one.metric) == (other.attack, other.metric)


def test_the_moment_that_counts_is_the_worst_of_its_curve():
    own = record(utility=None).leaks[0].success
    for value, step, wrong in ((0.5, 3, 0), (0.6, 3, 2), (0.5, 4, 1)):
        point = {"step": step, "part": 0, "recipient": "v"}
        point["success"] = own.model_copy(update={"value": value})
        told = leak(goal=Goal.LABEL, step=3, curve=[point])
        found = [m.what for m in rescore(record(leaks=[told], utility=None)).mismatches]
        assert len(found) == wrong + 1  # the first: it has no raw guesses
