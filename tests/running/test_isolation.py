"""An attack from outside runs where the truth is not in memory, and says of itself how it ended."""

from __future__ import annotations

import io
import os
import pickle
import threading
from dataclasses import replace
from multiprocessing.connection import Pipe
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cells import first_scene, make, session_of
from forked import ForkedAttack

from leakboard.bench.contracts import Channel, LeakboardError, MissingExtra
from leakboard.bench.methods import Knowledge, Silent, registry
from leakboard.bench.records import Store
from leakboard.bench.running import isolation
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.isolation import _answer, _packed, _read, is_external, serve
from leakboard.bench.running.runner import Runner
from leakboard.defenses.sap import SAP

ATTACK = """
import gc, os, sys
from typing import ClassVar
import numpy as np
from leakboard import Attack, Channel, Goal, Guess, Knows, MissingExtra, Source, ThreatModel
from leakboard.bench.tasks import Split
from leakboard.bench.methods import Silent

class Mine(Attack):
    "Does what its mode says."
    name: ClassVar[str] = "mine"
    source: ClassVar[Source] = Source("a test")
    threat: ClassVar[ThreatModel] = ThreatModel(
        frozenset({Goal.LABEL}), frozenset({Channel.LOGIT_GRADIENTS}), KNOWS
    )
    mode: str = "search"
    "What it does."

    def guess(self, seen, knowledge, rng):
        rows = np.unique(seen.collect(Channel.LOGIT_GRADIENTS).rows)
        values = rng.integers(0, 2, len(rows))
        if self.mode == "search":
            for thing in gc.get_objects():
                split = thing.get("train") if type(thing) is dict else None
                if type(split) is Split and len(split) == 93:  # no other test has so many
                    values = split.labels[rows]
        elif self.mode == "query":
            sent = knowledge.query(knowledge.auxiliary.tokens.take(__import__("torch").arange(4)), rng)
            known = sent.values.shape[1] == knowledge.base.embeddings.shape[1]
            told = any(name.startswith("LEAKBOARD") for name in os.environ)
            values = np.full(len(rows), int(known and not told))
        elif self.mode == "silent":
            raise Silent("nothing to read")
        elif self.mode == "missing":
            raise MissingExtra("a part", "an-extra")
        elif self.mode == "memory":
            raise MemoryError("too large")
        elif self.mode == "raise":
            raise ValueError("wrong")
        elif self.mode == "wrong type":
            return values
        elif self.mode == "exit":
            os._exit(3)
        return [Guess(Goal.LABEL, None, "train", rows, values)]
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    file = tmp_path_factory.mktemp("attack") / "mine.py"
    knows = "frozenset({Knows.BASE_WEIGHTS, Knows.QUERIES, Knows.AUXILIARY_TEXT})"
    file.write_text(ATTACK.replace("KNOWS", knows))
    return registry.load_method(f"{file}:Mine")


def success(tmp_path, attack, isolated):
    plan = make(SAP(eta=50), attacks=[attack], limit=93)
    (record,) = Runner(plan, Store(tmp_path), isolated=isolated).run()
    (leak,) = [leak for leak in record.leaks if leak.goal == "label" and leak.status == "ok"]
    return leak.success


def test_an_attack_that_searches_memory_finds_labels_only_in_the_process_that_has_them(
    tmp_path, mine
):
    assert success(tmp_path / "shared", mine(), False).value == 1
    found = success(tmp_path / "isolated", mine(), True)
    assert found.low < found.chance


def scene_of(attack):
    return replace(first_scene(SAP(), attacks=[attack], limit=16), isolated=True)


@pytest.fixture(scope="module")
def seen():
    session, _ = session_of(SAP(), limit=16)
    session.wire.at(0, 0)
    gradients = torch.ones(16, 2)
    session.wire.send(Channel.LOGIT_GRADIENTS, gradients, torch.arange(16))
    return session.wire.transcript()


def test_queries_cross_processes_and_secrets_of_the_environment_do_not(mine, seen, monkeypatch):
    monkeypatch.setenv("LEAKBOARD_SECRET", "a secret of the customer")
    leak = attack_all(scene_of(mine(mode="query")), seen)[0]
    assert leak.status == "ok", leak.reason
    assert set(leak.raw["guess"]) == {1}


def test_a_dead_process_is_a_failure_with_its_exit_code(mine, seen, monkeypatch):
    monkeypatch.setattr(isolation, "subprocess", SimpleNamespace(Popen=ForkedAttack))
    leak = attack_all(scene_of(mine(mode="exit")), seen)[0]
    assert leak.status == "failed"
    assert "the process of the attack died (exit code 3)" in leak.reason


@pytest.mark.parametrize(
    ("mode", "kind", "reason"),
    [
        ("silent", Silent, "^nothing to read$"),
        ("memory", MemoryError, "^MemoryError: too large"),
        ("raise", LeakboardError, r"^ValueError: wrong \(mine.py:\d+\)$"),
        ("wrong type", LeakboardError, "^guess must return a list of lb.Guess, got ndarray$"),
        ("missing", MissingExtra, "^a part is not installed.*an-extra"),
    ],
)
def test_an_error_crosses_processes_as_what_it_is(mine, seen, mode, kind, reason):
    knowledge = Knowledge(classes=2, device="cpu")
    rng = np.random.default_rng(0)
    ours, theirs = Pipe()
    threading.Thread(target=serve, args=(os.dup(theirs.fileno()),)).start()
    ours.send_bytes(_packed((mine(mode=mode), seen, knowledge, rng, 1, False)))
    with pytest.raises(kind, match=reason) as raised:
        _answer(ours, knowledge, rng)
    assert type(raised.value) is kind


def test_what_an_attack_sends_is_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "touched",)

    ours, theirs = Pipe()
    theirs.send_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="allow_pickle"):
        _read(ours)
    content = io.BytesIO()
    np.savez(content, words=np.array([Trap()], dtype=object), allow_pickle=True)
    theirs.send_bytes(content.getvalue())
    with pytest.raises(ValueError, match="allow_pickle"):
        _read(ours)
    assert not (tmp_path / "touched").exists()


def test_methods_of_this_package_are_not_external(mine):
    assert is_external(mine())
    assert not any(is_external(attack()) for attack in registry.attacks().values())
