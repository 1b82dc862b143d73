"""What seeds can decide: against simulations, printed tables of power, and scipy's noncentral t-distribution."""

from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pytest
from records import leak, record
from scipy import stats

from leakboard.leaderboards.findings import power as module
from leakboard.leaderboards.findings.power import (
    comparisons,
    describe_power,
    power,
    power_notes,
)
from leakboard.leaderboards.tables.claims import PrintedClaim, printed_claims
from leakboard.leaderboards.tables.results import results_table


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 34), (0.8, 15), (1.0, 10), (2.0, 5)])
def test_power_is_that_of_printed_tables_where_these_have_at_least_80_percent(effect, seeds):
    # Paired t-test, two-sided, 5 %: the least n for a power of 0.8 by Cohen's d (G*Power 3).
    assert power(1.0, effect, seeds) >= 0.8 > power(1.0, effect, seeds - 1)


@pytest.mark.parametrize("tests", [1, 9])
@pytest.mark.parametrize(("effect", "spread", "seeds"), [(1, 0.5, 3), (1, 1, 5), (0.05, 0.1, 10)])
def test_power_is_that_of_the_noncentral_t_distribution(effect, spread, seeds, tests):
    limit = stats.t.ppf(1 - 0.025 / tests, seeds - 1)
    shift = effect / spread * sqrt(seeds)
    other = stats.nct.sf(limit, seeds - 1, shift) + stats.nct.cdf(-limit, seeds - 1, shift)
    assert power(spread, effect, seeds, tests) == pytest.approx(other, abs=2e-4)


def test_power_is_the_share_of_simulated_experiments_that_a_t_test_shows():
    draws = np.random.default_rng(0).normal(1.0, 1.2, (20_000, 5))
    shown = (stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05).mean()
    assert power(1.2, 1.0, 5) == pytest.approx(shown, abs=0.01)


def test_power_of_equality_is_the_share_of_simulated_intervals_inside_the_margin():
    draws = np.random.default_rng(0).normal(0, 0.8, (20_000, 8))
    low, high = stats.t.interval(0.95, 7, draws.mean(1), stats.sem(draws, axis=1))
    inside = ((low >= -1) & (high <= 1)).mean()
    assert power(0.8, 1.0, 8, is_equality=True) == pytest.approx(inside, abs=0.01)


def test_what_seeds_exclude_is_half_an_interval():
    low, high = stats.t.interval(0.95, 4, 0, 2 / sqrt(5))
    first = replace(comparisons(results_table(pilot()), [])[0], spread=2.0)
    assert first.excluded(5) == pytest.approx((high - low) / 2)
    assert isnan(first.excluded(1))


NOISE = (0.010, -0.012, 0.004)


def cells(defense, params, shift, seeds=3, **fields):
    made = []
    for seed in range(seeds):
        leaks = [leak(0.9 - 0.1 * shift + seed / 500, "eia-nn")]
        utility = 0.9 - shift * (0.05 + NOISE[seed])
        made.append(record(defense, params, seed, utility, leaks, **fields))
    return made


def pilot(seeds=3):
    return [
        *cells("none", {}, 0, seeds, undefended=True),
        *cells("sap", {"eta": None}, 0, seeds, undefended=True),
        *cells("sap", {"eta": 75.0}, 1, seeds),
        *(record("untuned", {}, seed, 0.5, []) for seed in range(seeds)),
    ]


def test_costs_and_leakages_are_measured_by_the_spread_over_the_pilots_seeds():
    found = {one.kind: one for one in comparisons(results_table(pilot()), [])}
    cost = found["cost"]
    assert cost.spread == pytest.approx(100 * np.std(NOISE, ddof=1))
    assert (cost.seeds, cost.matters, cost.unit) == (3, 1.0, " points")
    assert cost.power(3) == pytest.approx(power(cost.spread, 1.0, 3))
    needed = cost.seeds_needed()
    assert cost.power(needed) >= 0.8 > cost.power(needed - 1)
    seconds = 2 * pilot()[0].cost.total_seconds
    assert cost.hours(5, 3) == pytest.approx(2 * seconds / 2 / 3600)
    assert found["leakage"].matters == 0.05


CLAIM = {
    "id": "sap-is-free",
    "paper": "SAP",
    "where": "Section 5",
    "claim": "SAP costs nothing.",
    "metric": "utility",
    "task": ["reviews"],
    "a": {"defense": "sap", "params": {"eta": 75}},
    "b": {"defense": "none"},
    "expect": "less",
}


def test_a_claim_shares_its_level_over_its_pairs_and_equality_has_its_own_power():
    two = [*pilot(), *cells("sap", {"eta": 75.0, "bottom": "trainable"}, 1)]
    claim = PrintedClaim.model_validate(CLAIM)
    first, _ = [one for one in comparisons(results_table(two), [claim]) if one.kind == "claim"]
    assert first.tests == 2
    assert first.power(3) == pytest.approx(power(first.spread, 1.0, 3, tests=2))
    equal = PrintedClaim.model_validate(CLAIM | {"expect": "equal", "margin": 2})
    first, _ = [one for one in comparisons(results_table(two), [equal]) if one.kind == "claim"]
    assert first.power(5) == pytest.approx(power(first.spread, 2, 5, is_equality=True))


def test_only_settings_of_the_plan_count():
    records = pilot()
    table = results_table(records)
    own = [one.cell.model_copy(update={"seed": 7}) for one in records]
    assert len(comparisons(table, [], own)) == len(comparisons(table, [])) > 0
    other = [cell.model_copy(update={"limit": 99}) for cell in own]
    assert comparisons(table, [], other) == []


def test_a_plan_that_cannot_decide_says_so_with_what_would():
    records = pilot()
    planned = [one.cell.model_copy(update={"seed": one.cell.seed + 3}) for one in records]
    lines = power_notes(planned, records)
    assert len(lines) == 1
    assert lines[0].startswith(
        "power: 3 seeds are too few for 1 of 1 costs, where 1 point matters (power below 0.5); half of these need "
    )
    many = [one.cell.model_copy(update={"seed": s}) for one in records for s in range(40)]
    assert power_notes(many, records) == []
    assert power_notes(planned, pilot(1)) == []
    assert power_notes([one.cell for one in records], records) == []  # nothing is left to run


def test_examples_are_named_where_they_make_much_of_the_variance(monkeypatch):
    found = comparisons(results_table(pilot()), [])
    monkeypatch.setattr(module, "_example_share", lambda a, b: 0.4)
    noisy = comparisons(results_table(pilot()), [])
    assert "evaluated examples" not in describe_power(found, 3)[0]
    assert (
        "40% of their variance comes from too few evaluated examples" in describe_power(noisy, 3)[0]
    )


def test_the_same_number_in_every_seed_decides_at_once():
    assert power(0.0, 0.05, 3) == power(0.0, 1.0, 3, is_equality=True) == 1.0


def test_every_printed_claim_but_those_of_perplexity_has_a_size_that_matters():
    for claim in printed_claims():
        assert claim.margin or claim.metric == "perplexity" or module.MATTERS[claim.metric]
