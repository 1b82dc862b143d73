"""Submitted cells run again: which of them, and what is said of the others."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
from collections import Counter
from types import SimpleNamespace

import pytest
from jinja2 import Environment, PackageLoader
from records import record
from submitted import more_private, sent, with_key

from leakboard.attacks.public_label import PublicLabel
from leakboard.bench.cli.submissions import unpack
from leakboard.bench.contracts.cell import MethodSpec
from leakboard.bench.methods.method import spec_of
from leakboard.bench.records.store import Store, to_text
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.submissions import cell_process, rerunning
from leakboard.bench.submissions.archive import read_submission
from leakboard.bench.submissions.cell_process import NotRun, run_in_subprocess
from leakboard.bench.submissions.judge import Order
from leakboard.bench.submissions.manifest import Verified, accepted
from leakboard.bench.submissions.reproduction import LocalResources
from leakboard.bench.submissions.rerunning import Reruns, first_of_each, rerun_order
from leakboard.bench.submissions.verification import verify


def verdict(path, count=1, seed=0, minutes=60.0, reporter=None):
    here = LocalResources()
    return verify(path, Reruns(count, seed, reporter or Reporter(), here, minutes), here)


class Listening(Reporter):
    """Keeps what it is told of."""

    def __init__(self):
        self.parts, self.warnings = set(), []

    def moved(self, what, done, total, lane=0):
        self.parts.add(what)

    def warned(self, message):
        self.warnings.append(message)


def told(report):
    return "\n".join(what for check, _, what in report.lines if check == "another run")


# Which cells


def test_defended_cells_are_drawn_before_all_others_and_each_as_often_as_another():
    cells = [record("none", seed=seed, undefended=True) for seed in range(4)]
    cells += [record("sap", {"eta": 75.0}, seed=seed) for seed in range(4)]
    first = Counter()
    for seed in range(400):
        order = rerun_order(cells, "content", seed)
        assert [r.undefended for r in order] == [False] * 4 + [True] * 4
        first[order[0].key] += 1
    assert len(first) == 4
    assert min(first.values()) > 60


def test_the_draw_depends_on_the_seed_and_on_the_records_and_on_nothing_else():
    cells = [record("sap", {"eta": 75.0}, seed=seed) for seed in range(30)]
    order = rerun_order(cells, "content", 5)
    assert rerun_order(cells[::-1], "content", 5) == order
    assert rerun_order(cells, "content", 6) != order
    assert rerun_order(cells, "other content", 5) != order


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"task": "sst2"}, "its data 'sst2' are not on this machine; give --data DIR"),
        ({"task": "somebodys"}, "unknown task 'somebodys'"),
        (
            {"model": "evil/model"},
            "its model 'evil/model' is not on this machine; give --model FOLDER",
        ),
        ({"data_hash": "6f1a" + "0" * 60}, "data_hash: 6f1a00000000"),
        ({"model_hash": "6f1a" + "0" * 60}, "model_hash: 6f1a"),
        ({"defense": MethodSpec(name="not-here")}, "unknown defense 'not-here'"),
        ({"defense": MethodSpec(name="sap", params={"eta": "../x"})}, "'../x' is a path; paths"),
        ({"defense": MethodSpec(name="sap", params={"eta": "~/x"})}, "'~/x' is a path; paths"),
        ({"defense": MethodSpec(name="sap", params={"eta": -1})}, "sap.eta"),
        ({"defense": MethodSpec(name="sap")}, "it cannot be run again here, because this differs"),
    ],
)
def test_what_cannot_be_run_again_is_said_and_not_followed(
    real, monkeypatch, tmp_path, change, expected
):
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
    assert LocalResources(tmp_path).obstacle(real[1]) is None
    assert expected in LocalResources(tmp_path).obstacle(with_key(real[1], **change))


def test_a_record_with_an_attack_whose_model_is_missing_cannot_be_run_again(
    real, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    attack = spec_of(PublicLabel(epochs=1, model="mpnet"))
    leaks = [*real[1].leaks, real[1].leaks[0].model_copy(update={"attack": attack})]
    obstacle = LocalResources(tmp_path).obstacle(real[1].model_copy(update={"leaks": leaks}))
    assert "leakboard model get mpnet" in obstacle


# What came of it


def test_an_honest_defended_cell_comes_out_the_same_in_a_sandbox_of_its_own(
    has_sandbox, real, tmp_path
):
    listening = Listening()
    report = verdict(sent(tmp_path / "a.zip", real[1:]), seed=3, reporter=listening)
    assert report.sound, told(report)
    assert len(listening.parts) > 1
    assert bool(listening.warnings) != has_sandbox
    assert "(sap, seed 0): every number came out the same" in told(report)
    assert report.repeated
    assert report.verified == Verified(
        seed=3, repeated=(real[1].key,), defended=True, methods=(), left={}
    )


def test_a_lie_of_which_all_numbers_fit_is_found(real, tmp_path, at_once):
    report = verdict(sent(tmp_path / "a.zip", [real[0], more_private(real[1])]))
    assert not report.sound
    assert not report.repeated
    assert "eia-nn inversion representations train token accuracy ok 0.2" in told(report)
    assert {out for check, out, _ in report.lines if check == "scores"} == {"held"}


def named(record, name, **fields):
    """A record of an invented defense."""
    defense = record.cell.defense.model_copy(update={"name": name, **fields})
    return with_key(record, defense=defense)


def test_an_invented_method_beside_reproduced_baselines_is_not_accepted(real, tmp_path, at_once):
    invented = named(real[1], "my-noise")
    report = verdict(sent(tmp_path / "a.zip", [*real, invented]))
    assert report.sound
    assert set(report.verified.repeated) == {r.key for r in real}
    assert report.unreproduced == ("my-noise",)
    assert not report.repeated
    report = verdict(sent(tmp_path / "b.zip", real))
    assert report.repeated


def test_an_invented_version_of_a_known_method_is_not_reproduced_by_the_known_one(real):
    other = named(real[1], "sap", version=99)
    assert rerunning.unreproduced([*real, other], real) == ("sap",)
    assert rerunning.unreproduced(real, real) == ()


def test_cells_without_results_and_shadow_models_need_no_reproduction(real):
    shadow = with_key(named(real[1], "my-noise"), shadow=0)
    skipped = named(real[1], "other").model_copy(update={"status": "skipped"})
    assert rerunning.unreproduced([real[0], shadow, skipped], [real[0]]) == ()


def test_every_defense_is_drawn_and_as_often_as_was_asked_for():
    cells = [
        record(name, {}, seed=seed) for name in ("none", "untuned", "dropout") for seed in range(4)
    ]
    for count in (1, 3):
        drawn = first_of_each(rerun_order(cells, "content", 7), count)
        assert Counter(r.cell.defense.name for r in drawn) == dict.fromkeys(
            ("none", "untuned", "dropout"), count
        )


def test_every_reason_and_every_method_that_was_not_run_is_named(real, tmp_path, at_once):
    report = verdict(sent(tmp_path / "a.zip", [*real, named(real[1], "my-noise")]))
    assert len(at_once) == 2
    assert "not run again: 1 cells: my-noise on reviews: unknown defense 'my-noise'" in told(report)
    assert "no cell of my-noise was reproduced" in told(report)
    assert report.verified.methods == ("my-noise",)
    assert list(report.verified.left.values()) == [1]


def test_no_more_cells_are_started_than_were_asked_for(real, tmp_path, monkeypatch):
    started = []

    def endless(order, minutes, reporter):
        started.append(minutes)
        raise NotRun("it did not finish within 3 minutes")

    monkeypatch.setattr(rerunning, "run_in_subprocess", endless)
    report = verdict(sent(tmp_path / "a.zip", real), count=1, minutes=3)
    assert started == [3, 3]  # one of each defense
    assert report.sound
    assert not report.repeated
    assert "sap on reviews: it did not finish within 3 minutes" in told(report)


def test_models_of_attackers_are_handed_on_as_they_are_and_named(real, tmp_path, at_once):
    shadow = with_key(real[1], shadow=0).model_copy(update={"leaks": real[1].leaks[:1]})
    report = verdict(sent(tmp_path / "a.zip", [*real, shadow]))
    assert list(at_once[0].shadows) == [shadow.key]
    assert "1 cells: shadow models are not run again" in told(report)


def test_what_was_run_again_stands_in_the_manifest_and_on_the_page(
    real, tmp_path, monkeypatch, leakboard, at_once
):
    monkeypatch.chdir(tmp_path)
    sent(tmp_path / "a.zip", real)
    code, out, err = leakboard("verify", "a.zip", "--seed", 5, "--accept")
    assert code == 0, out + err
    told = accepted(tmp_path / "results/published/my-noise")
    both = tuple(sorted(r.key for r in real))
    assert told.verified == Verified(seed=5, repeated=both, defended=True)
    code, out, err = leakboard("verify", "results/published/my-noise", "--seed", 5)
    assert code == 0, out + err
    assert "reproduced" not in page([told])
    word = told.model_copy(update={"verified": Verified(methods=("sap",))})
    assert "and verified; not reproduced: sap" in page([word])
    word = told.model_copy(update={"verified": Verified()})
    assert "and verified; not reproduced" in page([word])
    assert "reproduced" not in page([told.model_copy(update={"verified": None})])


def page(manifests):
    templates = Environment(loader=PackageLoader("leakboard.leaderboards.site"), autoescape=True)
    return templates.get_template("parts.html").module.submitted(manifests)


def test_what_is_not_reproduced_is_accepted_by_an_option_alone_and_marked_on_its_records(
    real, tmp_path, monkeypatch, leakboard, at_once
):
    monkeypatch.chdir(tmp_path)
    invented = named(more_private(real[1]), "my-noise")
    sent(tmp_path / "a.zip", [*real, invented])
    code, out, _ = leakboard("verify", "a.zip", "--accept")
    assert code == 1
    assert "no cell of my-noise was reproduced" in " ".join(out.split())
    assert not (tmp_path / "results").exists()
    code, out, err = leakboard("verify", "a.zip", "--accept", "--accept-without-rerun")
    assert code == 0, out + err
    assert "accepted, not reproduced: my-noise" in " ".join(out.split())
    folder = tmp_path / "results/published/my-noise"
    assert accepted(folder).verified.methods == ("my-noise",)
    marks = {r.key: r.provenance.not_reproduced for r in Store(folder).read_all()}
    assert marks == {real[0].key: False, real[1].key: False, invented.key: True}
    # The folder says it of itself, so it passes; without the mark it does not.
    code, out, err = leakboard("verify", "results/published/my-noise")
    assert code == 0, out + err
    verified = accepted(folder).verified.model_copy(update={"methods": ()})
    shutil.rmtree(folder)
    unpack(read_submission(tmp_path / "a.zip"), verified, tmp_path / "results/published")
    code, out, _ = leakboard("verify", "results/published/my-noise")
    assert code == 1, out


def test_a_file_that_calls_itself_not_reproduced_still_needs_the_option(
    real, tmp_path, monkeypatch, leakboard, at_once
):
    monkeypatch.chdir(tmp_path)
    invented = named(real[1], "my-noise")
    made = invented.provenance.model_copy(update={"not_reproduced": True})
    sent(tmp_path / "a.zip", [*real, invented.model_copy(update={"provenance": made})])
    assert leakboard("verify", "a.zip")[0] == 1


# A process of its own


def order_of(found):
    return Order(found.key, to_text(found).encode(), {}, None, "cpu", "tiny-bert", 1)


def test_a_cell_ends_with_its_time_and_leaves_no_process(real):
    # Those that draw figures, of a test before, stay.
    before = set(multiprocessing.active_children())
    with pytest.raises(NotRun, match=r"did not finish within 0\.001 minutes"):
        run_in_subprocess(order_of(real[1]), 0.001, Reporter())
    assert set(multiprocessing.active_children()) <= before


def test_a_process_that_dies_is_a_reason_and_no_error(monkeypatch):
    monkeypatch.setattr(cell_process, "get_context", lambda _: Dying)
    with pytest.raises(NotRun, match=r"its process died \(code 9\)"):
        run_in_subprocess(None, 1, Reporter())


class Dying:
    """A way to start processes, in which they die."""

    @staticmethod
    def set_forkserver_preload(names):
        pass

    @staticmethod
    def Pipe():  # noqa: N802
        return multiprocessing.Pipe()

    @staticmethod
    def Process(target, args, daemon):  # noqa: N802
        return multiprocessing.get_context("spawn").Process(target=os._exit, args=(9,), daemon=True)


def test_what_is_wrong_over_there_is_a_reason(real):
    sent = []
    broken = Order("0" * 16, b"{}", {}, None, "cpu", "tiny-bert", 1)
    cell_process._work(SimpleNamespace(send=sent.append), broken, pickle.dumps(None))
    assert sent == [("not run", "Corrupt: not a record (no key, no cell)")]
