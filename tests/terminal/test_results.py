"""Results as tables on a terminal."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from records import estimate, leak, record, skipped, sweep
from rich.console import Console

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.tables.frame import frame, in_order
from leakboard.leaderboards.terminal.results import best_tables, summary_tables

pytestmark = pytest.mark.usefixtures("few_methods", "certified")


def printed_text(
    records: list, width: int = 240, everything: bool = False, compact: bool = False
) -> str:
    console = Console(width=width, file=StringIO())
    rows = frame(in_order(records))
    for part in best_tables(rows) if compact else summary_tables(rows, everything):
        console.print(part)
    return console.file.getvalue()


def test_only_parameters_that_vary_are_shown() -> None:
    text = printed_text([record("sap", {"eta": eta, "bottom": "frozen"}) for eta in (50.0, 75.0)])
    assert "η=50" in text
    assert "frozen" not in text


def test_seeds_are_one_row_with_mean_and_interval() -> None:
    text = printed_text(sweep())
    assert text.count("η=") == 3
    assert "0.790 ±0.02" in text
    assert "0.490 [.465, .515]" in text


def test_a_weaker_protection_of_a_method_stands_above_a_stronger_one() -> None:
    made = [record("sap", {"eta": eta}) for eta in (50.0, None, 75.0)]
    text = printed_text([*made, record("none", {}, undefended=True)])
    places = [text.index(word) for word in ("none", "η=none", "η=75", "η=50")]
    assert places == sorted(places)


def test_channels_of_one_attack_stay_apart_and_are_named() -> None:
    about = {"attack": "spectral", "goal": Goal.LABEL}
    found = [
        leak(success, channel=channel, view=view, **about)
        for channel, success in ((Channel.ACTIVATIONS, 0.9), (Channel.ADAPTER_GRADIENTS, 0.7))
        for view in ("worst", "last")
    ]
    one = leak(0.6, attack="unmix", goal=Goal.LABEL, channel=Channel.GRADIENTS, view="worst")
    assert "…" not in printed_text([record(leaks=[*found, one])], width=80)
    text = printed_text([record(leaks=[*found, one])], width=120)
    for line in (
        "spectral activations 0.100",
        "spectral activations last 0.100",
        "spectral adapter-gradients 0.300",
        "spectral adapter-gradients last 0.300",
        "unmix 0.400",
    ):
        assert line in " ".join(text.split())


def test_numbers_stay_whole_on_a_terminal_of_80_columns() -> None:
    text = printed_text(sweep(), width=80)
    assert "0.490 [.465, .515]" in text
    assert "…" not in text


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("width", [80, 120])
def test_names_and_numbers_stay_whole_on_terminals(width: int, compact: bool) -> None:
    about = {"goal": Goal.LABEL, "chance": 0.55, "floor": estimate(0.6, 0.55)}
    found = [
        leak(0.9 - place / 20, attack, channel=channel, view=view, **about)
        for attack in ("spectral", "optimiser-inversion")
        for place, channel in enumerate((Channel.RECOMPUTED, Channel.ADAPTER_GRADIENTS))
        for view in ("worst", "last")
    ]
    attacks = ("eia-optimise", "logreg", "norm", "xgboost", "kmeans", "unmix")
    lost = [skipped(attack=attack, version=n) for n, attack in enumerate(attacks)]
    lost += [leak(None, "activation-drift", Goal.LABEL, status="failed", reason="boom")]
    params = [{"weight": weight, "sigma": 0.25, "adapters": 3} for weight in (0.125, 0.5)]
    made = [record("p3eft", given, s, leaks=[*found, *lost]) for given in params for s in (0, 1)]
    text = printed_text(made, width=width, compact=compact)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    whole = ["weight=0.125", "spectral", "0.450", "0.400"]
    long = [*Channel.RECOMPUTED.split(), "optimiser-inversion", *attacks]
    for word in [*whole, *(["label"] if compact else long), "activation-drift"]:
        assert word in text, word


def test_a_skipped_attack_stands_once_with_its_reason_and_a_failed_cell_in_its_row() -> None:
    bad = record("sap", {"eta": 9.0}, utility=None, leaks=[], status="failed", reason="[b]oom")
    text = printed_text([record(seed=s, leaks=[leak(), skipped()]) for s in (0, 1)] + [bad])
    assert text.count("needs a cut above 0") == 1
    assert "failed: [b]oom" in text


def test_what_an_audit_proves_stands_beside_what_it_could_have_proven() -> None:
    def audited(seed: int, bound: float):
        about = {"goal": Goal.MEMBERSHIP, "channel": Channel.MODEL, "epsilon": bound}
        found = leak(0.6, "membership", epsilon_ceiling=4.13, **about)
        return record("dpsgd", {"epsilon": 8.0}, seed, leaks=[found])

    text = printed_text([audited(0, 0.2), audited(1, 0.4)])
    line = "by membership: ε ≥ 0.30; a perfect attacker would prove 4.13"
    assert text.count("audit of dpsgd") == text.count(line) == 1
    assert "audit" not in printed_text([record()])


def test_what_reads_nothing_is_shown_only_when_asked_for() -> None:
    made = [record(leaks=[leak(), leak(0.1, attack="prior", channel=None)])]
    assert "prior" not in printed_text(made)
    assert "prior" in printed_text(made, everything=True)


def test_a_seed_that_failed_is_not_averaged_away() -> None:
    lost = leak(None, status="failed", reason="boom")
    text = printed_text([record(seed=0), record(seed=1, leaks=[lost])])
    assert "failed: boom" in text
    assert "0.500 [.490, .510]" in text


def test_rows_that_differ_only_in_training_are_told_apart() -> None:
    text = printed_text([record(epochs=2), record(epochs=5)])
    assert "epochs=2" in text
    assert "epochs=5" in text
    text = printed_text([record(), record(precision="bf16")])
    assert "sap float32" in text
    assert "sap bf16" in text


def test_the_compact_view_has_utility_both_numbers_and_why_an_attack_failed() -> None:
    idle = leak(None, attack="eia-optimise", status="skipped", reason="nothing to [search]")
    lost = leak(None, attack="logit-gradient", status="failed", goal=Goal.LABEL, reason="[b]oom")
    strong = leak(0.8, attack="eia-map")
    made = [record(seed=seed, leaks=[leak(0.3), strong, idle, lost]) for seed in (0, 1)]
    text = printed_text(made, width=80, compact=True)
    assert re.search(r"sap · accuracy 0\.900 ±0\.\d\d", text)
    assert re.search(r"inversion by eia-map +0\.700 +0\.200 \[\.200, \.200\] +0\.950", text)
    assert re.search(r"label +– +– +– +1 ", text)
    assert "note 1, logit-gradient (label): failed: [b]oom" in text
    assert "nothing to [search]" not in text
    assert "…" not in text


def test_the_compact_view_names_once_what_nobody_measured() -> None:
    idle = [leak(None, "norm", Goal.LABEL, status="skipped"), skipped(attack="eia-optimise")]
    guessed = leak(0.4, attack="prior", channel=None)
    made = [record("sap", {"eta": eta}, leaks=[leak(0.3), *idle]) for eta in (50.0, 75.0)]
    text = printed_text(made, compact=True)
    assert text.count("label") == text.count("not measured: label; --attacks says why") == 1
    text = printed_text([record(leaks=[guessed, *idle])], compact=True)
    assert "sap · accuracy" in text
    assert "inversion by" not in text
    assert "not measured: inversion, label" in text or "not measured: label, inversion" in text


def test_the_compact_view_has_a_row_for_each_attribute_and_names_what_is_swept() -> None:
    found = [
        leak(s, attack="aia-mlp", goal=Goal.ATTRIBUTE, attribute=name, params={"labelled": n})
        for n, s in ((0.1, 0.5), (0.5, 0.6))
        for name in ("gender", "age")
    ]
    text = printed_text([record(leaks=found)], compact=True)
    assert re.search(r"gender by aia-mlp labelled=0\.5 +– +0\.400 ", text)
    assert re.search(r"age by aia-mlp labelled=0\.5 +– +0\.400 ", text)


def test_the_compact_view_tells_of_cells_that_gave_nothing() -> None:
    bad = record("sap", {"eta": 9.0}, utility=None, leaks=[], status="failed", reason="boom")
    off = record("sap", cut=3, utility=None, leaks=[], status="skipped", reason="at 0 only")
    text = printed_text([bad, off], compact=True)
    assert "failed: boom" in text
    assert "skipped: sap: at 0 only" in text
