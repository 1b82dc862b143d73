"""The command line, through its real entry point: help, and mistakes."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from fresh import printed

from leakboard.bench import cli


def test_the_command_is_registered_as_a_script():
    (script,) = [e for e in entry_points(group="console_scripts") if e.name == "leakboard"]
    assert script.load() is cli.main


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; sys.argv = ['leakboard', '--help']\n"
        "from leakboard.bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('slow:', sorted({'torch', 'transformers', 'pandas', 'faiss'} & set(sys.modules)))"
    )
    assert "slow: []" in printed(code)


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "plan",
        "run",
        "attack",
        "show",
        "export",
        "plot",
        "board",
        "choose",
        "report",
        "diff",
        "snapshot",
        "push",
        "detect",
        "check",
        "new defense",
        "submit",
        "verify",
    ],
)
def test_help_of_each_command_teaches_by_an_example(leakboard, command):
    code, out, _ = leakboard(*command.split(), "--help")
    assert code == 0
    assert f"leakboard {command}" in " ".join(out.split())
    assert "Example" in out


MISTAKES = {
    "unknown suite": (["run", "smok"], "Did you mean 'smoke'?"),
    "unknown task": (["run", "smoke", "--task", "review"], "Did you mean 'reviews'?"),
    "unknown model": (["run", "smoke", "--model", "minilmm"], "Did you mean 'minilm'?"),
    "seeds that are no numbers": (["run", "smoke", "--seeds", "a,b"], "--seeds: expected whole"),
    "a limit of nothing": (["run", "smoke", "--limit", "0"], "limit"),
    "unknown device": (["run", "smoke", "--device", "gpu"], "device: expected cpu, cuda"),
    "a device of torch alone": (
        ["run", "smoke", "--device", "xpu:1"],
        "torch has a device 'xpu', Leakboard does not support it: expected cpu, cuda, cuda:N, mps",
    ),
    "no number of a GPU": (["run", "smoke", "--device", "cuda:x"], "expected cpu, cuda, cuda:N"),
    "records that are not there": (["show", "smoke"], "Run the suite first: leakboard run smoke"),
    "records of no suite": (["show", "sap-table3x"], "Did you mean 'sap-table3'?"),
    "a folder that is not there": (["show", "runs/mine"], "runs/mine: no such folder"),
    "a table as a suite": (["plan", "t.csv"], "t.csv: not a suite. A suite file ends in .yaml"),
    "two files to write": (
        ["export", "RECORDS", "a.csv", "--out", "b.csv"],
        "the file once: a.csv",
    ),
    "tables of two formats": (
        ["export", "RECORDS", "a.csv", "--format", "latex"],
        "another format",
    ),
    "a table of one goal": (["export", "RECORDS", "a.csv", "--goal", "inputs"], "only for tables"),
    "two folders to draw": (["plot", "RECORDS", "RECORDS"], "draws one suite or folder"),
    "unknown rule": (["findings", "RECORDS", "--rule", "headline"], "Did you mean 'headlines'?"),
    "unknown goal": (["plot", "smoke", "--goal", "lables"], "Did you mean 'labels'?"),
    "unknown parameter": (["plot", "RECORDS", "--against", "etta"], "Did you mean 'eta'?"),
    "unknown attack": (["plot", "RECORDS", "--attack", "eia-n"], "Did you mean 'eia-nn'?"),
    "unknown method": (["check", "sapp"], "Did you mean 'sap'?"),
    "a bad name": (["new", "defense", "My Noise"], "My Noise"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_with_code_2_and_says_what_to_do(
    leakboard, records, monkeypatch, tmp_path, mistake
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("text,label\n", "utf-8")
    words, advice = MISTAKES[mistake]
    words = [records if word == "RECORDS" else word for word in words]
    code, _, err = leakboard(*words)
    assert code == 2
    assert advice in err
    assert "Traceback" not in err


def test_an_unknown_option_ends_with_code_2(leakboard):
    code, _, err = leakboard("run", "smoke", "--epoch", "3")
    assert code == 2
    assert "--epoch" in err
