"""`leakboard run --record`: the cell of a record is run once more, or the reason why not is told."""

import sys

import pytest
from records import leak, record

from leakboard.bench import cli
from leakboard.bench.contracts.cell import MethodSpec
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.records.store import Store, find
from leakboard.bench.running import reproduction
from leakboard.bench.running.reproduction import check_unchanged, plan_reproduction
from leakboard.bench.running.runner import Runner
from leakboard.bench.suites.suite import load_suite

SUITE = """
name: quick
task: reviews
model: tiny-bert
limit: 64
seeds: [3]
train: {epochs: 1, batch_size: 16, learning_rate: 2.0e-3}
defenses: [sap: {eta: 60}]
attacks: [eia-nn, prior]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder as results/published, with one record."""
    from leakboard.bench.running.plan import make_plan

    place = tmp_path_factory.mktemp("made")
    (place / "quick.yaml").write_text(SUITE)
    store = Store(place / "published" / "quick")
    Runner(make_plan(load_suite(str(place / "quick.yaml"))), store).run()
    return place / "published"


@pytest.fixture
def published(made):
    return find(next(made.glob("*/*.json")).stem, [made])


def changed(one, **cell):
    """The record with another cell, and the key of that."""
    new = one.cell.model_copy(update=cell)
    return one.model_copy(update={"cell": new, "key": new.key})


def test_the_cell_is_run_again_with_the_same_outcome(made, published, tmp_path):
    store = Store(tmp_path)
    [once_more] = Runner(plan_reproduction(published), store).run()
    assert once_more.outcome() == published.outcome()
    assert store.path(published.key).is_file()


def test_the_command_writes_into_a_folder_of_its_own(
    made, published, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("leakboard.bench.cli.running.PUBLISHED", made)
    monkeypatch.setattr(sys, "argv", ["leakboard", "run", "--record", published.key])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    folder = tmp_path / "results" / "local" / f"record-{published.key}"
    assert [path.stem for path in folder.glob("*.json")] == [published.key]
    told = " ".join(capsys.readouterr().out.split())
    assert f"leakboard show record-{published.key}" in told
    assert "every number came out the same" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["smoke", "--record", "x"], "leave out the suite 'smoke'"),
        ([], "give a suite, as in `leakboard run smoke`"),
        (["--record", "x", "--seeds", "1"], "runs one cell as it was"),
        (["--record", "x"], "no record 'x'"),
    ],
)
def test_what_does_not_go_together_is_refused(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["leakboard", "run", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("field", ["data_hash", "model_hash"])
def test_other_data_or_another_model_is_refused_by_the_name_of_the_field(published, field):
    with pytest.raises(LeakboardError, match=rf"{field}: 0000 in the record, \w+ here"):
        plan_reproduction(changed(published, **{field: "0000"}))


@pytest.mark.parametrize(("model", "expected"), [("dialogue-gpt", True), ("minilm", False)])
def test_records_of_the_dialogue_gpt_that_each_machine_trained_are_explained(
    published, model, expected
):
    own = changed(published, model=model)
    with pytest.raises(LeakboardError, match="model_hash: ") as refused:
        check_unchanged(own, own.cell.model_copy(update={"model_hash": "0000"}))
    assert ("each machine trained dialogue-gpt" in str(refused.value)) is expected


def test_another_version_of_the_defense_or_an_attack_is_refused(published, monkeypatch):
    older = published.cell.defense.model_copy(update={"version": 0})
    with pytest.raises(LeakboardError, match=r"sap\.version: 0 in the record, 1 here"):
        plan_reproduction(changed(published, defense=older))
    attack = MethodSpec(name="eia-nn", version=0)
    with pytest.raises(LeakboardError, match=r"eia-nn\.version: 0 in the record"):
        plan_reproduction(
            published.model_copy(
                update={"leaks": [leak(0.5).model_copy(update={"attack": attack})]}
            )
        )


def test_a_parameter_that_is_gone_or_new_is_named(published, monkeypatch):
    spec = published.cell.defense
    gone = spec.model_copy(update={"params": {**spec.params, "theta": 1}})
    with pytest.raises(LeakboardError, match=r"sap\.theta: Extra inputs"):
        plan_reproduction(changed(published, defense=gone))
    fewer = {name: value for name, value in spec.params.items() if name != "bottom"}
    with pytest.raises(LeakboardError, match=r"sap\.params\.bottom: None in the record, frozen"):
        plan_reproduction(changed(published, defense=spec.model_copy(update={"params": fewer})))


def test_the_settings_of_training_come_from_the_record(published):
    other = published.cell.train.model_copy(update={"batch_size": 7, "learning_rate": 0.02})
    [planned] = plan_reproduction(changed(published, train=other)).cells
    assert planned.cell.train == other


def test_a_task_of_somebody_elses_data_is_refused_before_anything_is_loaded():
    with pytest.raises(LeakboardError, match="'tickets' was a user's own data"):
        plan_reproduction(record(task="tickets"))


def test_of_two_versions_of_an_attack_the_newest_counts():
    both = [leak(0.5, version=1), leak(0.6, version=2), leak(0.1, "prior")]
    found = reproduction._newest_attacks(record(leaks=both))
    assert [(spec.name, spec.version) for spec in found] == [("eia-nn", 2), ("prior", 1)]


def test_a_key_cut_short_is_answered_with_the_whole_one(made, published):
    with pytest.raises(LeakboardError, match=f"Did you mean '{published.key}'"):
        find(published.key[:9], [made])


def test_a_damaged_record_is_not_run(made, published, tmp_path):
    folder = tmp_path / "published" / "x"
    folder.mkdir(parents=True)
    (folder / f"{published.key}.json").write_text("{")
    with pytest.raises(LeakboardError, match="not valid JSON"):
        find(published.key, [tmp_path / "published"])
