"""`leakboard.run`: a suite from Python, with methods from a file outside the project."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from forked import ForkedAttack
from paths import ROOT

import leakboard as lb
from leakboard.bench import running
from leakboard.bench.methods import registry
from leakboard.bench.running import isolation
from leakboard.defenses.none import NoDefense

SAMPLE = ROOT / "tests" / "plugin" / "leakboard_sample"
TINY = {"task": "reviews", "model": "tiny-bert", "limit": 48, "train": {"epochs": 1}}


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A defense and an attack in plain files of somebody's own folder."""
    folder = tmp_path_factory.mktemp("outside")
    for name in ("defense", "attack"):
        shutil.copy(SAMPLE / f"{name}.py", folder / f"my_{name}.py")
    return folder


@pytest.fixture(scope="module")
def own(outside):
    return tuple(
        registry.load_method(str(outside / f"my_{name}.py")) for name in ("defense", "attack")
    )


@pytest.fixture(scope="module")
def ran(own, tmp_path_factory):
    """A run of both, with the folder of its records."""
    defense, attack = own
    folder = tmp_path_factory.mktemp("ran")
    suite = {
        **TINY,
        "name": "mine",
        "defenses": ["none", defense, defense(sigma=3.0), {"sap": {"eta": None}}],
        "attacks": ["eia-nn", attack()],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolation, "subprocess", SimpleNamespace(Popen=ForkedAttack))
        results = lb.run(suite, folder / "records", transcripts=folder / "sent", progress=False)
    return suite, folder, results


def test_a_defense_of_sixty_lines_in_a_file_outside_keeps_the_rules(outside):
    file = outside / "my_defense.py"
    assert len(file.read_text().splitlines()) <= 60
    assert lb.check(file).passed


def test_the_precision_of_a_run_is_that_of_its_cells(tmp_path):
    suite = {**TINY, "name": "p", "limit": 16, "defenses": ["none"], "attacks": ["prior"]}
    found = lb.run(suite, tmp_path, precision="bf16", progress=False)
    trained = {one.cell.train.precision for one in found if one.cell.defense.name == "none"}
    assert trained == {"bf16"}
    with pytest.raises(lb.LeakboardError, match="precision: expected float32 or bf16"):
        lb.run(suite, tmp_path, precision="fp8", progress=False)


def test_methods_of_ones_own_run_beside_those_of_the_project(ran):
    _, _, results = ran
    assert [str(r.cell.defense.name) for r in results] == [
        "none",
        *["sample-noise"] * 2,
        "sap",
        "untuned",  # which a plan adds
    ]
    assert all(record.status == "ok" for record in results)
    table = results.frame()
    done = table[(table["attack"] == "sample-nearest") & (table["status"] == "ok")]
    assert set(done["defense"]) == {"sample-noise", "sap"}


def test_guesses_as_tensors_are_scored_like_arrays(ran):
    _, _, results = ran
    table = results.frame()
    plain = table[(table["params"].str.contains('"eta": null')) & (table["view"] == "train")]
    theirs = plain[plain["attack"] == "sample-nearest"]["success"]
    ours = plain[plain["attack"] == "eia-nn"]["success"]
    assert theirs.tolist() == ours.tolist() == [1.0]


def test_a_run_goes_on_where_it_stopped(ran, own, monkeypatch):
    suite, folder, results = ran
    defense, _ = own

    def fail(self, session):
        raise AssertionError("trained again")

    for cls in (defense, NoDefense):
        monkeypatch.setattr(cls, "fine_tune", fail)
    again = lb.run(suite, folder / "records", progress=False)
    assert again.records == results.records


def test_results_know_their_name_and_folder_and_transcripts_are_kept(ran):
    _, folder, results = ran
    assert results.name == "mine"
    assert results.folders == (folder / "records",)
    assert {path.name for path in (folder / "sent").iterdir()} == {r.key for r in results}


def test_records_lie_where_the_command_puts_them(leakboard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = lb.run({**TINY, "name": "mine", "defenses": "none", "attacks": "eia-nn"})
    record, _ = results
    assert (tmp_path / "results/local/mine" / f"{record.key}.json").is_file()
    code, out, _ = leakboard("show", "results/local/mine")
    assert code == 0
    assert "eia-nn" in out


def test_nothing_is_shown_where_there_is_no_terminal(tmp_path, capsys):
    lb.run({**TINY, "name": "mine", "defenses": "none", "attacks": "prior"}, tmp_path)
    out = capsys.readouterr()
    assert out.out == out.err == ""


def test_workers_begin_to_load_before_the_plan_is_made(tmp_path, monkeypatch):
    begun = []

    def planned(*_):
        assert begun == [2], "this process and its workers would load one after the other"
        raise lb.LeakboardError("planned")

    monkeypatch.setattr(lb.Engine, "prepare", lambda engine: begun.append(engine.workers))
    monkeypatch.setattr(running, "make_plan", planned)
    with pytest.raises(lb.LeakboardError, match="planned"):
        lb.run("smoke", tmp_path, workers=2)


def test_a_suite_object_runs_with_other_values(tmp_path):
    fields = {**TINY, "name": "mine", "defenses": (NoDefense(),), "attacks": ()}
    suite = lb.Suite.model_validate(fields)
    results = lb.run(suite, tmp_path, seeds=[0, 1], limit=32)
    own = [r.cell for r in results if r.cell.defense.name == "none"]
    assert [(cell.seed, cell.limit) for cell in own] == [(0, 32), (1, 32)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"suite": 3}, "suite: expected the name of a suite, the path of a file, a dict"),
        ({"suite": "smok"}, "Did you mean 'smoke'?"),
        ({"out": 3}, "out: expected a path, got int 3"),
        ({"data": ["a"]}, r"data: expected a path, got list \['a'\]"),
        ({"device": "gpu"}, "device: expected cpu, cuda"),
        ({"progress": "yes"}, "progress: expected true, false or a rich console"),
        ({"seeds": "0,1"}, "seeds: must be a whole number, got '0,1'"),
        ({"task": "review"}, "task: unknown task 'review'. Did you mean 'reviews'?"),
        ({"limit": 0}, "limit: "),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, change, told):
    suite = {**TINY, "name": "mine", "defenses": ["none"]}
    with pytest.raises(lb.LeakboardError, match=told):
        lb.run(**{"suite": suite, "out": tmp_path} | change)
    assert not list(tmp_path.iterdir())
