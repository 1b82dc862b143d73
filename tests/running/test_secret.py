"""What an attack could derive from a public seed comes from a secret, which whoever runs cells keeps."""

from __future__ import annotations

import numpy as np
import pytest
from cells import make

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.prior import Prior
from leakboard.bench.contracts import LeakboardError, fingerprint
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, Reporter, Runner, context_of, plan_reproduction
from leakboard.bench.running.engine import VARIABLE, user_secret
from leakboard.bench.tasks.planting import plant_task
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.sap import SAP

ONE, OTHER = "0123456789abcdef", "another-0123456789"
QUICK = {"limit": 24, "train": {"epochs": 1}, "attacks": (Prior(),)}


class Heard(Reporter):
    def __init__(self):
        self.warnings = []

    def warned(self, message):
        self.warnings.append(message)


def test_the_secret_decides_coins_and_noise_and_its_holder_repeats_a_run(tmp_path, monkeypatch):
    plan = make(SAP(eta=100), attacks=(NearestNeighbour(),), limit=24, plant={"audit": 24})

    def ran(folder, secret):
        monkeypatch.setenv(VARIABLE, secret)
        return Engine().run(plan, Store(tmp_path / folder), Reporter())[0]

    mine, again, other = ran("a", ONE), ran("b", ONE), ran("c", OTHER)
    assert mine.outcome() == again.outcome() != other.outcome()
    assert mine.provenance.secret == fingerprint(ONE)
    # The seed of the cell, which everybody knows, no longer tells on which examples it was trained.
    monkeypatch.setenv(VARIABLE, ONE)
    held = context_of(plan_reproduction(mine), plan.cells[0])
    seed, task = held.cell.seed, plan.tasks[held.cell.data_hash].limited(24, held.seeds.data)
    guessed = [
        plant_task(task, held.cell.plant, guess).members for guess in (seed, held.seeds.data)
    ]
    assert not any(np.array_equal(held.inputs.planted.members, coins) for coins in guessed)


def test_a_record_of_another_secret_or_of_none_is_run_again_from_the_public_seeds(
    tmp_path, monkeypatch
):
    plan = make(Frozen(), **QUICK)
    (public,) = Runner(plan, Store(tmp_path / "public")).run()
    (mine,) = Engine().run(plan, Store(tmp_path / "mine"), Reporter())
    assert plan_reproduction(public).secret == ""
    assert plan_reproduction(mine).secret == user_secret()
    monkeypatch.setenv(VARIABLE, OTHER)
    assert plan_reproduction(mine).secret == ""


def test_a_folder_keeps_to_what_its_records_were_drawn_from(tmp_path, monkeypatch):
    store, heard = Store(tmp_path), Heard()
    Runner(make(Frozen(), **QUICK), store).run()  # as earlier versions did
    both = Engine().run(make(Frozen(), SAP(eta=50), **QUICK), store, heard)
    assert {record.provenance.secret for record in both} == {None}
    assert "public seeds" in heard.warnings[0]
    other = Store(tmp_path / "other")
    Engine().run(make(Frozen(), **QUICK), other, Reporter())
    monkeypatch.setenv(VARIABLE, OTHER)
    with pytest.raises(
        LeakboardError, match=rf"{fingerprint('secret of the tests')}.*Set {VARIABLE}"
    ):
        Engine().run(make(SAP(eta=50), **QUICK), other, Reporter())


def test_a_users_secret_is_drawn_once_and_readable_by_nobody_else(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("typer.get_app_dir", lambda _: str(tmp_path / "of" / "user"))
    first = user_secret()
    assert user_secret() == first
    assert len(first) == 32
    (kept,) = (tmp_path / "of" / "user").iterdir()
    assert kept.stat().st_mode & 0o077 == 0


def test_where_no_secret_can_be_kept_the_variable_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    (tmp_path / "file").touch()
    monkeypatch.setattr("typer.get_app_dir", lambda _: str(tmp_path / "file" / "below"))
    with pytest.raises(LeakboardError, match=f"Set {VARIABLE}"):
        user_secret()


@pytest.mark.parametrize("weak", ["", "short", "0123456789abcde", "a" * 40, "abcabc" * 8])
def test_a_weak_secret_is_refused_with_a_way_to_draw_one(monkeypatch, weak):
    monkeypatch.setenv(VARIABLE, weak)
    with pytest.raises(LeakboardError, match="at least 16 characters, 8 of them different"):
        user_secret()
    monkeypatch.setenv(VARIABLE, ONE)
    assert user_secret() == ONE
