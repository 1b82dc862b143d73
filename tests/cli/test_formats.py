"""JSON for programs from every command that prints a table, short help, quiet, completion and `doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_tree import commands
from fresh import printed
from paths import ROOT
from submitted import RECORDS

import leakboard as lb
from leakboard.bench.cli import completion, doctor
from leakboard.bench.methods import registry
from leakboard.bench.records.store import Store
from leakboard.leaderboards.results import Attacked

COMMANDS = dict(commands())
WRITERS = {
    *("report", "export", "plot", "publish", "snapshot", "push", "submit"),
    *("new defense", "new attack", "model get"),
}
"""Commands that write files and print only where."""
SLOW = {"run", "tune", "plan", "attack", "audit", "verify", "report", "publish", "push", "submit"}
"""Commands that show progress."""
SHIPPED = ROOT / "results" / "published"
WORDS = {
    "list": ["list", "attacks"],
    "plan": ["plan", "quick.yaml"],
    "run": ["run", "smoke"],
    "tune": ["tune", "smoke", "--to", "tuned.yaml"],
    "attack": ["attack", "wire", "--model", "minilm"],
    "audit": ["audit", "model", "--members", "a.txt", "--others", "b.txt"],
    "detect": ["detect", "reviews", "--detector", "patterns", "--limit", "20"],
    "show": ["show", "mine"],
    "board": ["board", SHIPPED / "dpnr-cape"],
    "choose": ["choose", "reviews", "inputs", "mine"],
    "findings": ["findings", SHIPPED / "dpnr-cape"],
    "diff": ["diff", SHIPPED / "dpnr-cape", SHIPPED / "offsite"],
    "check": ["check", "none"],
    "verify": ["verify", "my-noise.zip", "--rerun", "none"],
    "model list": ["model", "list"],
    "doctor": ["doctor"],
}
"""How each command is called here."""
SUITE = "name: quick\ntask: reviews\nmodel: tiny-bert\nlimit: 64\nseeds: [0]\ndefenses: [none]\nattacks: [prior]\n"


def options(command):
    return {word for one in command.params for word in one.opts}


@pytest.fixture
def place(leakboard, monkeypatch, tmp_path):
    """The command in a folder with records, a submission and a suite; what takes long answers at once."""
    monkeypatch.chdir(tmp_path)
    for record in RECORDS:
        Store(tmp_path / "mine").write(record)
    (tmp_path / "quick.yaml").write_text(SUITE)
    leakboard("submit", "mine", "--method", "My noise", "--quiet")

    def answered(answer):
        def call(*words, progress, **options):
            if progress:
                progress.print("half of it is done")
            return answer()

        return call

    attacked = Attacked(tuple(RECORDS[0].leaks), summary=("It leaks.",))
    choice = SimpleNamespace(
        tuned=SimpleNamespace(trained="lr 1"),
        chosen=SimpleNamespace(row="none", utility=0.5, records=[1]),
        trials=[1, 2],
        tuned_on="",
        alike=False,
    )
    tuning = SimpleNamespace(choices=[choice], notes=["slow"])
    report = SimpleNamespace(method="none", passed=True, results=[], table=lambda: "rules")
    monkeypatch.setattr(lb, "audit", answered(lambda: attacked), raising=False)
    monkeypatch.setattr(lb, "attack", answered(lambda: attacked), raising=False)
    monkeypatch.setattr(lb, "run", answered(lambda: lb.load("mine")), raising=False)
    monkeypatch.setattr(lb, "tune", answered(lambda: tuning), raising=False)
    monkeypatch.setattr(lb, "check", lambda name: report, raising=False)
    return leakboard


def test_every_command_prints_json_or_only_writes_files():
    formatted = {name for name, one in COMMANDS.items() if "--format" in options(one)}
    formatted -= {"export", "plot"}  # their formats are kinds of files
    assert formatted | WRITERS == {*COMMANDS}
    assert not formatted & WRITERS
    assert formatted == {*WORDS}
    assert {name for name, one in COMMANDS.items() if "--quiet" in options(one)} >= SLOW


@pytest.mark.parametrize("name", sorted(WORDS))
def test_json_is_all_that_stands_on_standard_output(place, name):
    code, out, err = place(*WORDS[name], "--format", "json")
    assert code in (0, 1), err
    assert json.loads(out)
    assert "NaN" not in out
    if name in ("run", "tune", "attack", "audit"):
        assert "half of it is done" in err
        assert "half of it is done" not in place(*WORDS[name], "--format", "json", "-q")[2]
    table = place(*WORDS[name])[1]
    with pytest.raises(ValueError, match=r"Expecting|Extra"):
        json.loads(table)
    assert place(*WORDS[name], "--format", "xml")[0] == 2


@pytest.mark.parametrize("name", ["run", "audit"])
def test_quiet_shows_the_result_without_progress(place, name):
    loud, quiet = place(*WORDS[name])[1], place(*WORDS[name], "-q")[1]
    assert "half of it is done" in loud
    assert quiet == loud.replace("half of it is done\n", "")


def test_numbers_of_records_are_the_same_in_json(place):
    rows = json.loads(place(*WORDS["show"], "--format", "json")[1])
    frame = lb.load("mine").table.frame()
    assert [row["success"] for row in rows] == pytest.approx(frame["success"].tolist(), nan_ok=True)
    content = json.loads(place(*WORDS["plan"], "--format", "json")[1])
    assert {cell["kind"] for cell in content["cells"]} == {"to run"}
    assert content["counts"]["to run"] == len(content["cells"])
    verdict = json.loads(place(*WORDS["verify"], "--format", "json")[1])
    assert verdict["accepted"] is False
    assert {check["outcome"] for check in verdict["checks"]} >= {"held"}


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_a_short_option_shows_the_help(leakboard, name):
    short, long = (leakboard(*name.split(), option) for option in ("-h", "--help"))
    assert short == long
    assert short[0] == 0
    assert "Usage" in short[1]


def completed(words, at):
    """What bash would complete, by the installed script in a process of its own."""
    script = Path(sys.executable).with_name("leakboard")
    told = {"_LEAKBOARD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [script], env=os.environ | told, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def test_the_shell_completes_names_and_gets_its_script(leakboard, monkeypatch):
    assert completed("leakboard run memorisation", 2) == ["memorisation-smoke"]
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    script = Path(sys.executable).with_name("leakboard")
    shown = subprocess.run(
        [script, "--show-completion", "bash"], capture_output=True, text=True, check=False
    )
    assert "_LEAKBOARD_COMPLETE=complete_bash" in shown.stdout


def test_names_are_completed_as_the_registry_has_them_without_importing_it():
    assert {*completion.complete_attack("")} == {*registry.attacks()}
    assert {*completion.complete_defense("")} == {*registry.defenses()}
    assert completion.complete_suite("lm-m") == ["lm-memory"]
    assert "sst2" in completion.complete_task("s")
    assert completion.complete_kind("mo") == ["models"]
    code = (
        "import sys; from leakboard.bench.cli import completion as c\n"
        "assert c.complete_method('sap') and c.complete_task('s') and c.complete_suite('s')\n"
        "print('slow:', sorted({'torch', 'pandas', 'transformers'} & set(sys.modules)))"
    )
    assert "slow: []" in printed(code)


def test_doctor_says_what_is_here_and_how_to_get_the_rest(leakboard, monkeypatch, tmp_path):
    monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
    (tmp_path / "sst2").mkdir()
    code, out, _ = leakboard("doctor", "--format", "json")
    content = json.loads(out)
    assert (code, content["broken"]) == (0, 0)
    checks = {(one["group"], one["name"]): one for one in content["checks"]}
    assert checks["packages", "torch"]["state"] == "ok"
    assert checks["models", "mpnet"]["remedy"] in ("", "leakboard model get mpnet")
    assert "Apache-2.0" in checks["models", "minilm"]["detail"]
    assert checks["data", "sst2"]["state"] == "ok"
    assert "leakboard[hub]" in checks["data", "mnli"]["remedy"]
    assert checks["environment", "LEAKBOARD_SECRET"]["detail"].startswith("set, ")
    assert "secret of the tests" not in out
    code, out, _ = leakboard("doctor")
    assert code == 0
    assert "nothing is broken" in out
    assert leakboard("doctor", "-q")[1] == "nothing is broken\n"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("data", ["LEAKBOARD_DATA", "no such folder"]),
        ("version", ["numpy", "0.1, expected >=2.0", "pip install 'numpy>=2.0'"]),
        ("package", ["numpy", "not installed"]),
        ("disk", ["cache", "0.0 GiB free", "use another disk"]),
        ("secret", ["LEAKBOARD_SECRET", "at least 16 characters"]),
    ],
)
def test_doctor_fails_where_something_is_broken(leakboard, monkeypatch, tmp_path, case, words):
    if case == "data":
        monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path / "nowhere"))
    elif case == "secret":
        monkeypatch.setenv("LEAKBOARD_SECRET", "short")
    elif case == "disk":
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: SimpleNamespace(free=0))
    else:
        version = doctor.importlib.metadata.version

        def other(name):
            if name != "numpy":
                return version(name)
            if case == "package":
                raise doctor.importlib.metadata.PackageNotFoundError
            return "0.1"

        monkeypatch.setattr(doctor.importlib.metadata, "version", other)
    code, out, _ = leakboard("doctor", "--quiet")
    assert code == 1
    shown = " ".join(out.split())
    for each in words:
        assert each in shown
    assert "pyarrow" not in shown
