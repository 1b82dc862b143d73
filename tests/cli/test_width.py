"""Tables of commands fit 80 and 120 columns without cut words, and begin with what matters."""

from __future__ import annotations

import re

import pytest
from paths import ROOT
from rich.cells import cell_len

from leakboard.bench import cli
from leakboard.bench.cli import doctor
from leakboard.bench.cli.output import complaints, console
from leakboard.leaderboards.results import Attacked, load
from leakboard.leaderboards.tables import GOAL_WORDS

SHIPPED = ROOT / "results" / "published"
COMMANDS = {
    "list": ["list"],
    "list a kind": ["list", "defenses"],
    "list suites": ["list", "suites"],
    "list a goal": ["list", "attacks", "label"],
    "list one": ["list", "attacks", "public-label"],
    "model list": ["model", "list"],
    "plan": ["plan", "smoke", "--model", "tiny-bert", "--limit", "32", "--why"],
    "show": ["show", SHIPPED / "dpnr-cape"],
    "show all": ["show", SHIPPED / "dpnr-cape", "--all"],
    "show attacks": ["show", SHIPPED / "attributes", "--attacks"],
    "show trials": ["show", SHIPPED / "jft-glue-trials"],
    "board": ["board", SHIPPED / "attributes", SHIPPED / "sap-figure2"],
    "board of one goal": ["board", SHIPPED / "attributes", "--all"],
    "board of papers": ["board", SHIPPED / "sap-figure2", "--papers"],
    "choose": ["choose", "blog_gender", "attributes", SHIPPED / "attributes"],
    "findings": ["findings", SHIPPED / "attributes", "--all"],
    "diff": ["diff", SHIPPED / "dpnr-cape", SHIPPED / "attributes"],
}


def words(text: str) -> set[str]:
    """Words of letters alone, of some length."""
    return set(re.findall(r"(?<![\w…])[a-z]{5,}(?![\w…])", text))


@pytest.fixture
def printed(leakboard, monkeypatch):
    main = cli.main

    def printed(width: int, *arguments) -> str:
        def narrow():
            console.width = complaints.width = width
            main()

        monkeypatch.setattr(cli, "main", narrow)
        code, out, err = leakboard(*arguments)
        assert code == 0, err
        return out

    return printed


@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit_the_terminal_and_words_stay_whole(printed, name):
    wide = printed(400, *COMMANDS[name])
    for width in (80, 120):
        text = printed(width, *COMMANDS[name])
        assert max(map(cell_len, text.splitlines())) <= width
        assert "…" not in text.replace("https://…", "")
        assert words(text) <= words(wide) | {"strongest", "attack", "measure"}


def test_doctor_fits_the_terminal_with_whole_words(printed, monkeypatch):
    names = "financial_phrasebank, blog_gender_age, presidio-analyzer, transformers, xgboost-cpu, accelerate"
    checks = [
        doctor.Check("packages", names, "ok", ""),
        doctor.Check("extra presidio", "presidio", "missing", "not installed (>=2.2.360)", "pip install 'leakboard[presidio]'"),
        doctor.Check("space", "working folder", "ok", f"/home/somebody/{'project/' * 3}: 55.9 GiB free"),
    ]  # fmt: skip
    monkeypatch.setattr(doctor, "examine", lambda: checks)
    wide = printed(400, "doctor")
    for width in (60, 80, 120):
        text = printed(width, "doctor")
        assert max(map(cell_len, text.splitlines())) <= width
        assert words(text) == words(wide)
        assert "pip install 'leakboard[presidio]'" in text


@pytest.mark.parametrize(
    ("name", "most", "rest"),
    [
        ("show", 31, "--all"),
        ("show trials", 31, "--all"),
        ("board", 31, "--all"),
        ("findings", 31, "--all"),
    ],
)
def test_the_first_lines_are_ten_rows_and_say_how_to_see_the_rest(printed, name, most, rest):
    text = printed(100, *(word for word in COMMANDS[name] if word != "--all"))
    assert len(text.splitlines()) <= most
    assert rest in text


def test_findings_begin_with_ten_sentences(printed):
    text = printed(400, "findings", SHIPPED / "matrix")
    assert len(text.splitlines()) == 11
    assert re.search(r"10 of \d+ findings; all with --all", text)


def test_records_of_trials_show_their_utilities(printed):
    text = printed(120, *COMMANDS["show trials"])
    assert "Settings by utility" in text
    found = load(SHIPPED / "jft-glue-trials")
    best = max(record.utility.value for record in found.records if record.utility)
    assert re.search(r"JFT.* 0\.\d\d", text)
    assert "nothing was read" not in text
    assert best <= 1


def test_attacks_are_ten_and_all_on_request(printed):
    leaks = [leak for record in load(SHIPPED / "attributes").records[:3] for leak in record.leaks]
    shown = {}
    for everything in (False, True):
        with console.capture() as capture:
            for part in Attacked(tuple(leaks)).tables(everything):
                console.print(part)
        shown[everything] = capture.get()
    scored = sum(leak.success is not None for leak in leaks)
    assert f"{scored - 10} more score" in shown[False]
    assert "all with --all" in shown[False]
    assert len(shown[False].splitlines()) < len(shown[True].splitlines())
    goals = {GOAL_WORDS[leak.goal] for leak in leaks if leak.success}
    assert all(goal in shown[False] for goal in goals)
