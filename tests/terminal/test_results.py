"""Results as tables on a terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from experiments import compared
from records import estimate, leak, record, skipped
from rich.console import Console

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.tables.record_set import RecordSet
from leakboard.leaderboards.terminal import attacks_tables, printable, results_tables


def printed(records, width: int = 120, everything: bool = False, attacks: bool = True) -> str:
    found = RecordSet.of(records)
    parts = (
        attacks_tables(found.table, found.frame(), everything)
        if attacks
        else results_tables(found.table, found.frame())
    )
    console = Console(width=width, file=StringIO())
    for part in printable(parts):
        console.print(part)
    return console.file.getvalue()


def line_with(text: str, *words: str) -> str:
    (line,) = (one for one in text.splitlines() if all(word in one for word in words))
    return line


def test_a_cost_that_must_not_be_compared_says_why():
    hardly = [
        one.model_copy(update={"utility": estimate(0.88)})
        if one.cell.defense.name == "untuned"
        else one
        for one in compared({75.0: (0.5, 0.89)})
    ]
    text = " ".join(printed(hardly, attacks=False).split())
    assert (
        "1.0 points lost (not comparable: tuning does not clearly gain more than 3 points here: 2.2 [1.7, 2.7])"
        in text
    )


def test_each_setting_has_its_utility_and_cost_and_each_goal_its_leakage():
    text = printed(compared(labels=0.95), attacks=False)
    assert "SAP, η = 75 · accuracy 0.85 [0.85, 0.86] · 5.0 points lost · seeds 0, 1, 2" in text
    below = text[text.index("SAP, η = 75") :].splitlines()[1:3]
    assert below[0].split("  ")[0] == "inputs"
    assert "48 % [48, 49]" in below[0]
    assert "0.50" in below[0]
    assert "eia-nn (token accuracy)" in below[0]
    assert below[1].startswith("labels")
    assert "100 %" in below[1]


def test_what_is_not_certified_has_no_number():
    text = printed(compared(twin=0.1), attacks=False)
    assert "not certified" in line_with(text[text.index("SAP, η = 50") :], "0.20")


def test_only_parameters_that_vary_are_shown():
    text = printed([record("sap", {"eta": eta, "bottom": "frozen"}) for eta in (50.0, 75.0)])
    assert "SAP, η = 50" in text
    assert "frozen" not in text


def test_seeds_are_one_row_with_mean_and_interval():
    text = printed([record(seed=s, leaks=[leak(0.5 + s / 100)]) for s in range(3)])
    assert "0.51 [0.49, 0.53]" in line_with(text, "eia-nn on inputs")
    assert "accuracy 0.90" in text


def test_channels_of_one_attack_are_rows_of_their_own_and_are_named():
    about = {"attack": "spectral", "goal": Goal.LABEL}
    found = [
        leak(success, channel=channel, view=view, **about)
        for channel, success in ((Channel.ACTIVATIONS, 0.9), (Channel.ADAPTER_GRADIENTS, 0.7))
        for view in ("worst", "last")
    ]
    one = leak(0.6, attack="unmix", goal=Goal.LABEL, channel=Channel.GRADIENTS, view="worst")
    text = " ".join(printed([record(leaks=[*found, one])]).split())
    for line in (
        "spectral on labels activations 0.90",
        "spectral on labels activations last 0.90",
        "spectral on labels adapter-gradients 0.70",
        "spectral on labels adapter-gradients last 0.70",
        "unmix on labels 0.60",
    ):
        assert line in text


@pytest.mark.parametrize("attacks", [False, True])
@pytest.mark.parametrize("width", [80, 120])
def test_names_and_numbers_stay_whole_on_terminals(width, attacks):
    about = {"goal": Goal.LABEL, "chance": 0.55, "floor": estimate(0.6, 0.55)}
    found = [
        leak(0.9 - place / 20, attack, channel=channel, view=view, **about)
        for attack in ("spectral", "optimiser-inversion")
        for place, channel in enumerate((Channel.RECOMPUTED, Channel.ADAPTER_GRADIENTS))
        for view in ("worst", "last")
    ]
    lost = [skipped(attack=attack) for attack in ("eia-optimise", "logreg", "norm", "xgboost")]
    lost += [leak(None, "activation-drift", Goal.LABEL, status="failed", reason="boom")]
    params = [{"weight": weight, "sigma": 0.25, "adapters": 3} for weight in (0.125, 0.5)]
    made = [record("p3eft", given, s, leaks=[*found, *lost]) for given in params for s in (0, 1)]
    text = printed(made, width, attacks=attacks)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    whole = ["weight = 0.125", "spectral"]
    whole += ["optimiser-inversion", "activation-drift", "xgboost", "0.60"] if attacks else []
    for word in whole:
        assert word in text, word


def test_a_skipped_attack_stands_once_with_its_reason_and_a_failed_cell_too():
    bad = record("sap", {"eta": 9.0}, utility=None, leaks=[], status="failed", reason="[b]oom")
    text = printed([record(seed=s, leaks=[leak(), skipped()]) for s in (0, 1)] + [bad])
    assert text.count("needs a cut above 0") == 1
    assert "failed: [b]oom" in text
    assert "failed: [b]oom" in printed([bad], attacks=False)


def test_what_an_audit_proves_stands_with_what_it_could_have_proven():
    def audited(seed: int, bound: float):
        about = {"goal": Goal.MEMBERSHIP, "channel": Channel.MODEL, "epsilon": bound}
        found = leak(0.6, "membership", epsilon_ceiling=4.13, **about)
        return record("dpsgd", {"epsilon": 8.0}, seed, leaks=[found])

    text = printed([audited(0, 0.2), audited(1, 0.4)])
    assert text.count("by membership: ε ≥ 0.30; a perfect attacker would prove 4.13") == 1
    assert "audit" not in printed([record()])


def test_what_reads_nothing_is_shown_only_when_asked_for():
    made = [record(leaks=[leak(), leak(0.1, attack="prior", channel=None)])]
    assert "prior" not in printed(made)
    assert "prior" in printed(made, everything=True)


def test_a_seed_that_failed_is_not_averaged_away():
    lost = leak(None, status="failed", reason="boom")
    text = printed([record(seed=0), record(seed=1, leaks=[lost])])
    assert "failed: boom" in text
    assert "0.50 [0.49, 0.51]" in line_with(text, "eia-nn on inputs", "token")
