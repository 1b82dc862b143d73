"""Options have one name and one meaning in every command, and natural mistakes work or teach."""

from __future__ import annotations

import pytest
from command_tree import commands
from paths import ROOT

import leakboard as lb

SHIPPED = ROOT / "results" / "published"
SYNONYMS = (
    {"--out", "--to", "--output", "--outdir", "--dir", "--file"},
    {"--budget", "--points", "--max-cost"},
    {"--goal", "--hide", "--target"},
    {"--task", "--tasks", "--dataset"},
    {"--data", "--datasets"},
    {"--format", "--form", "--json"},
    {"--quiet", "--silent"},
)
CHOSEN = {"--out", "--to", "--budget", "--goal", "--task", "--data", "--format", "--quiet"}
ONE_MEANING = ("--budget", "--goal", "--data", "--device", "--limit", "--seeds", "--quiet", "--all")


COMMANDS = dict(commands())


def options(command):
    return {word: one for one in command.params for word in one.opts if word.startswith("--")}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_thing_has_one_name(name):
    known = options(COMMANDS[name])
    for group in SYNONYMS:
        assert not (known.keys() & group) - CHOSEN
    assert ("--out" in known) == ("--to" in known)
    if "--out" in known and name != "tune":  # which writes a suite to --to, and records to --out
        assert known["--out"] is known["--to"]


@pytest.mark.parametrize("option", ONE_MEANING)
def test_an_option_means_the_same_everywhere(option):
    found = {
        name: known[option] for name, one in COMMANDS.items() if option in (known := options(one))
    }
    assert len(found) > 1
    defaults = {str(one.default) for one in found.values()}
    assert len(defaults) == 1, {name: one.default for name, one in found.items()}
    if option != "--all":
        assert len({one.help for one in found.values()}) == 1


@pytest.mark.parametrize("option", ["--out", "--to"])
def test_a_place_to_write_goes_by_both_names(leakboard, tmp_path, option):
    file = tmp_path / "table.csv"
    assert leakboard("export", SHIPPED / "dpnr-cape", option, file)[0] == 0
    assert file.is_file()
    assert leakboard("new", "defense", "my-noise", option, tmp_path / "new")[0] == 0
    assert (tmp_path / "new" / "my_noise.py").is_file()


def test_a_goal_may_be_an_option_of_choose(leakboard):
    place = SHIPPED / "attributes"
    words = leakboard("choose", "blog_gender", "authors", place)[1]
    assert leakboard("choose", "blog_gender", "--goal", "authors", place)[1] == words
    assert words


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: lb.choose("sst2", goal="labels"), "goal: the argument is called hide"),
        (lambda: lb.choose("sst2", budget=3), "budget: the argument is called max_cost"),
        (lambda: lb.report("x", out="y.html"), "out: the argument is called to"),
        (lambda: lb.run("smoke", to="x"), "to: the argument is called out"),
        (lambda: lb.attack("wire", "minilm", labels="x"), "labels: the argument is called truth"),
    ],
)
def test_a_natural_mistake_in_python_is_answered_with_the_name(call, advice):
    with pytest.raises(lb.LeakboardError, match=advice):
        call()


@pytest.mark.parametrize("words", [("--limit", "0"), ("--limit=0",)])
def test_an_error_names_the_option_that_was_given(leakboard, words):
    code, _, printed = leakboard("plan", "smoke", *words)
    assert code == 2
    assert printed.startswith("Error: --limit: must be greater")


def test_an_error_does_not_name_an_option_that_was_not_given(leakboard):
    code, _, printed = leakboard("choose", "sst2", "colour")
    assert code == 2
    assert printed.startswith("Error: hide: unknown 'colour'")


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (("--width", "0"), "--width: expected inches"),
        (("--style", "pretty"), "--style: matplotlib has no style"),
        (("--format", "gif"), "--format: unknown"),
    ],
)
def test_options_of_a_figure_are_checked_before_records(leakboard, monkeypatch, words, start):
    monkeypatch.setattr(lb, "load", None)
    code, _, printed = leakboard("plot", SHIPPED / "sap-sst2", *words)
    assert code == 2
    assert printed.startswith(f"Error: {start}")
