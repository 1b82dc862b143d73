"""The command line, through its real entry point."""

import json
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

import pandas as pd
import pytest

from bench import cli

SUITE = """
name: quick
task: reviews
model: tiny-bert
limit: 64
seeds: [0]
train: {epochs: 1, batch_size: 16}
defenses: [none, frozen, sap: {eta: [none, 75]}]
attacks: all
"""


def run(monkeypatch, capsys, *words):
    """Exit code, standard output and standard error of `leakboard WORDS`."""
    monkeypatch.setattr(sys, "argv", ["leakboard", *map(str, words)])
    # Wide enough that no message is broken where a test looks for it.
    monkeypatch.setattr(cli.console, "_width", 300)
    monkeypatch.setattr(cli.complaints, "_width", 300)
    code = 0
    try:
        cli.main()
    except SystemExit as ended:
        code = ended.code or 0
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture
def leakboard(monkeypatch, capsys):
    return lambda *words: run(monkeypatch, capsys, *words)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Records of one small suite, made by the installed command in a process of its own."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "quick.yaml").write_text(SUITE)
    script = Path(sys.executable).with_name("leakboard")
    done = subprocess.run(
        [script, "run", "quick.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "results" / "local" / "quick"


def test_the_command_is_registered_as_a_script():
    (script,) = [e for e in entry_points(group="console_scripts") if e.name == "leakboard"]
    assert script.load() is cli.main


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; sys.argv = ['leakboard', '--help']\n"
        "from bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('slow:', sorted({'torch', 'transformers', 'pandas', 'faiss'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "slow: []" in out.stdout


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


def test_a_run_leaves_one_record_per_cell(records):
    assert len(list(records.glob("*.json"))) == 4


def test_a_second_run_trains_nothing(leakboard, records, monkeypatch):
    monkeypatch.chdir(records.parents[2])
    before = {path: path.stat().st_mtime_ns for path in records.glob("*.json")}
    code, out, _ = leakboard("run", "quick.yaml")
    assert code == 0
    assert out.count("kept") == 4
    assert {path: path.stat().st_mtime_ns for path in records.glob("*.json")} == before


def test_show_tells_leaks_and_why_an_attack_did_not_run(leakboard, records):
    code, out, _ = leakboard("show", records)
    assert code == 0
    assert "logit-gradient" in out
    assert "frozen does not send logit-gradients" in out


def test_show_can_be_limited_to_the_best_attacks_or_to_one(leakboard, records):
    code, out, _ = leakboard("show", records, "--best")
    assert code == 0
    assert "EP by the paper's attack and by the strongest" in out
    _, out, _ = leakboard("show", records, "--attack", "paper")
    assert "eia-nn" in out
    # No paper measures labels; what did not run stays.
    assert "0.000" not in "".join(line for line in out.splitlines() if "logit-gradient" in line)
    assert "frozen does not send logit-gradients" in out


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_an_export_has_a_row_per_cell_and_attack(leakboard, records, tmp_path, suffix):
    file = tmp_path / f"all.{suffix}"
    code, _, _ = leakboard("export", records, file)
    assert code == 0
    reader = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[suffix]
    table = reader(file)
    ran = table[(table.attack == "eia-nn") & (table.view == "train")]
    assert sorted(ran.defense) == ["frozen", "none", "sap", "sap"]
    assert (ran.ep <= 1).all()


def test_plot_writes_three_formats(leakboard, records, tmp_path):
    code, _, _ = leakboard("plot", records, "--out", tmp_path)
    assert code == 0
    assert {p.suffix: p.read_bytes()[:4] for p in tmp_path.iterdir()} == {
        ".png": b"\x89PNG",
        ".svg": b"<?xm",
        ".pdf": b"%PDF",
    }


def test_plot_against_a_swept_parameter_names_its_files_after_it(leakboard, records, tmp_path):
    code, _, _ = leakboard("plot", records, "--against", "eta", "--out", tmp_path)
    assert code == 0
    assert {p.name for p in tmp_path.iterdir()} == {
        f"quick-inversion-by-eta.{kind}" for kind in ("png", "svg", "pdf")
    }


def broken(folder, **changes):
    """A copy of a good record file with some top-level values changed, under its own key."""
    source = next(folder.glob("*.json"))
    content = json.loads(source.read_text()) | changes
    return source.name, json.dumps(content)


MISTAKES = {
    "unknown suite": (["run", "smok"], "Did you mean 'smoke'?"),
    "unknown task": (["run", "smoke", "--task", "review"], "Did you mean 'reviews'?"),
    "unknown model": (["run", "smoke", "--model", "minilmm"], "Did you mean 'minilm'?"),
    "seeds that are no numbers": (["run", "smoke", "--seeds", "a,b"], "--seeds: expected whole"),
    "a limit of nothing": (["run", "smoke", "--limit", "0"], "limit"),
    "unknown device": (["run", "smoke", "--device", "gpu"], "--device: expected cpu, cuda"),
    "records that are not there": (["show", "sap-table3x"], "Run the suite first"),
    "unknown goal": (["plot", "smoke", "--goal", "labels"], "Did you mean 'label'?"),
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


def test_a_suffix_that_cannot_be_written_names_those_that_can(leakboard, records, tmp_path):
    code, _, err = leakboard("export", records, tmp_path / "all.xlsx")
    assert code == 2
    assert ".parquet" in err


def test_a_damaged_record_is_named_and_the_rest_is_shown(leakboard, records, tmp_path):
    for path in records.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    name, text = broken(records, status="failed")
    (tmp_path / name).write_text(text)
    code, out, err = leakboard("show", tmp_path)
    assert code == 0
    assert name in err
    assert "checksum" in err
    assert "eia-nn" in out


def test_a_record_of_a_later_schema_stops_with_the_advice_to_upgrade(leakboard, records, tmp_path):
    name, text = broken(records, schema_version=99)
    (tmp_path / name).write_text(text)
    code, _, err = leakboard("show", tmp_path)
    assert code == 2
    assert "Upgrade leakboard" in err
    assert (tmp_path / name).read_text() == text


def test_a_failed_cell_ends_the_run_with_code_1_and_its_reason(leakboard, tmp_path, monkeypatch):
    from defenses.frozen import Frozen

    def fail(self, session):
        raise ZeroDivisionError("no head")

    monkeypatch.setattr(Frozen, "fine_tune", fail)
    (tmp_path / "one.yaml").write_text(
        SUITE.replace("[none, frozen, sap: {eta: [none, 75]}]", "[frozen]")
    )
    monkeypatch.chdir(tmp_path)
    code, out, _ = leakboard("run", "one.yaml")
    assert code == 1
    assert "ZeroDivisionError: no head" in out
    code, out, _ = leakboard("show", tmp_path / "results" / "local" / "quick")
    assert "ZeroDivisionError: no head" in out


def test_a_missing_extra_ends_the_run_with_the_command_that_installs_it(
    leakboard, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "faiss", None)
    (tmp_path / "quick.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    code, out, err = leakboard("run", "quick.yaml")
    assert code == 2
    assert "pip install 'leakboard[cpu]'" in err
    assert out.count("done") == 2  # none and frozen need no search, and are kept


def test_ctrl_c_keeps_what_is_finished_and_says_so(tmp_path):
    long = "[frozen, none]\nlimit: 6000\ntrain: {epochs: 100, batch_size: 16}"
    (tmp_path / "long.yaml").write_text(
        f"name: long\ntask: reviews\nmodel: tiny-bert\ndefenses: {long}"
    )
    script = Path(sys.executable).with_name("leakboard")
    process = subprocess.Popen(
        [script, "run", "long.yaml"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell has been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (kept := list(tmp_path.glob("results/local/long/*.json"))):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("results/local/long/*.json")) == kept
