"""The truth never enters an attack, and no attack can spoil a record."""

from __future__ import annotations

import gc
import re
import sys
import types
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from cells import ATTACKS, first_scene, leak_of, make, run, session_of

from leakboard.bench.contracts.threat import Channel, Goal, Knows, ThreatModel
from leakboard.bench.contracts.transcript import Guess
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.methods.attack import Attack
from leakboard.bench.methods.method import Source
from leakboard.bench.records.store import Store
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.cell_context import context_of
from leakboard.bench.running.runner import Runner
from leakboard.defenses.sap import SAP

GOALS = frozenset({Goal.INVERSION, Goal.LABEL, Goal.ATTRIBUTE})
NO_DATA = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.FrameType)
SECRET = "nobody derives this"
FOUND: dict[str, list[str]] = {}
"""What a spying attack came across, by its name; it has no other way to tell."""


class Secrets:
    """The customer's truth of one cell, and a search for it."""

    def __init__(self, scene):
        inputs, seeds = scene.inputs, scene.seeds
        self.seeds = {scene.secret, seeds.planting, seeds.mechanism}
        coins = inputs.planted.members
        self.coins = None if coins is None else tuple(coins.tolist())
        splits = [inputs.task.splits[name] for name in ("train", "dev")]
        self.texts = {text for split in splits for text in split.texts}
        arrays = [split.labels for split in splits]
        arrays += [values for split in splits for values in split.attributes.values()]
        arrays += [inputs.tokens[name].ids.values.numpy() for name in ("train", "dev")]
        self.arrays = {_print(array) for array in arrays}

    def among(self, *roots):
        """Kinds of secrets reachable from some objects through data."""
        found = set()
        for thing in reachable(roots):
            if isinstance(thing, str) and thing in self.texts:
                found.add("text")
            if isinstance(thing, str | int) and thing in self.seeds:
                found.add("seeds")
            if isinstance(thing, np.ndarray) and tuple(thing.ravel().tolist()) == self.coins:
                found.add("coins")
            if isinstance(thing, np.ndarray | torch.Tensor) and _print(thing) in self.arrays:
                found.add("numbers")
            if isinstance(thing, list | tuple) and len(thing) > 9:
                numbers = all(type(v) is int for v in thing)
                if numbers and _print(np.array(thing, dtype=object)) in self.arrays:
                    found.add("numbers")
        return sorted(found)


def _print(array):
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu().numpy()
    return tuple(array.ravel().tolist()) if array.dtype.kind in "iufO" else ()


def reachable(roots):
    """Everything that can be reached from some objects, except by way of code."""
    seen, waiting = set(), list(roots)
    kept = []  # an id must not be given to another object during the search
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, types.FunctionType):  # its variables, but not its module's
            waiting += [thing.__closure__, thing.__defaults__]
        if id(thing) in seen or isinstance(thing, NO_DATA):
            continue
        seen.add(id(thing))
        kept.append(thing)
        yield thing
        waiting += gc.get_referents(thing)
        # Memory that several arrays share is not known to the collector.
        if isinstance(thing, np.ndarray):
            waiting.append(thing.base)
        if isinstance(thing, torch.Tensor):
            waiting += [thing._base, thing.grad if thing.is_leaf else None]
            if thing.numel() and not thing.is_sparse:
                storage = thing.detach().untyped_storage()
                whole = torch.empty(0, dtype=thing.dtype).set_(storage)
                if whole.numel() != thing.numel():
                    waiting.append(whole)


class Spy(Attack):
    """Hands all it was given to a search."""

    name: ClassVar[str] = "spy"
    source: ClassVar[Source] = Source("a test")
    threat: ClassVar[ThreatModel] = ThreatModel(
        GOALS, frozenset(), frozenset({Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT})
    )
    secrets: ClassVar[Secrets]

    def guess(self, seen, knowledge, rng):
        assert knowledge.base is not None
        assert knowledge.mechanism is not None
        assert knowledge.auxiliary is not None
        FOUND["arguments"] = self.secrets.among(seen, knowledge, rng, self)
        frame, frames = sys._getframe(), []
        # The test that started it holds the truth, and the runner of tests all other tests.
        while frame and not frame.f_code.co_name.startswith("test_"):
            frames.append(frame)
            frame = frame.f_back
        FOUND["stack"] = self.secrets.among(*(v for f in frames for v in f.f_locals.values()))
        FOUND["depth"] = [f.f_code.co_name for f in frames]
        return []


@pytest.mark.parametrize("limit", [48, None])
def test_attack_finds_no_secret_in_its_arguments_or_on_its_stack(limit):
    defense = SAP(eta=50)
    plan = replace(make(defense, attacks=[Spy()], limit=limit, plant={"audit": 24}), secret=SECRET)
    scene = context_of(plan, plan.cells[0])
    Spy.secrets = Secrets(scene)
    session = scene.session(Wire(defense.sends, scene.inputs.recorded))
    # The search itself can find: the session holds texts, ids, labels and seeds, the scene all.
    assert Spy.secrets.among(session) == ["numbers", "seeds", "text"]
    assert Spy.secrets.among(scene) == ["coins", "numbers", "seeds", "text"]
    if limit is None:  # as long to train on would be a while
        session, _ = session_of(defense, limit=48)
    defense.fine_tune(session)
    FOUND.clear()
    leaks = attack_all(scene, session.wire.transcript())
    assert {leak.status for leak in leaks} == {"skipped"}, leaks[0].reason
    assert FOUND["arguments"] == []
    assert FOUND["stack"] == []
    assert "guess" in FOUND["depth"]
    assert "attack_all" not in FOUND["depth"]


def test_stack_search_can_find_where_an_attack_is_called_directly(monkeypatch, tmp_path):
    plan = replace(make(SAP(eta=50), attacks=[Spy()]), secret=SECRET)
    Spy.secrets = Secrets(context_of(plan, plan.cells[0]))
    monkeypatch.setattr("leakboard.bench.running.attacks.run_isolated", lambda call: call())
    FOUND.clear()
    (record,) = Runner(plan, Store(tmp_path)).run()
    assert {leak.status for leak in record.leaks} == {"skipped"}, record.leaks[0].reason
    assert FOUND["stack"] == ["numbers", "seeds", "text"]


def test_undeclared_knowledge_is_not_given():
    class Plain(Spy):
        name: ClassVar[str] = "plain"
        threat: ClassVar[ThreatModel] = ThreatModel(GOALS, frozenset())

        def guess(self, seen, knowledge, rng):
            FOUND["plain"] = [knowledge.base, knowledge.mechanism, knowledge.auxiliary]
            return []

    session, _ = session_of(SAP())
    attack_all(first_scene(SAP(), attacks=[Plain()]), session.wire.transcript())
    assert FOUND["plain"] == [None, None, None]


def test_undeclared_channels_hold_zeros_and_declared_ones_what_was_sent(tmp_path):
    class Narrow(Spy):
        name: ClassVar[str] = "narrow"
        threat: ClassVar[ThreatModel] = ThreatModel(
            frozenset({Goal.LABEL}), frozenset({Channel.LOGIT_GRADIENTS})
        )

        def guess(self, seen, knowledge, rng):
            FOUND["shown"] = sorted({m.channel for m in seen.messages if m.values.any()})
            FOUND["rows"] = [len(m.rows) for m in seen.messages if not m.values.any()]
            return []

    run(tmp_path, SAP(), attacks=[Narrow()])
    assert FOUND["shown"] == [Channel.LOGIT_GRADIENTS]
    assert FOUND["rows"]
    assert all(FOUND["rows"])


def rows_of(seen):
    return seen.collect(Channel.LOGIT_GRADIENTS).rows


def label(rows, values, **fields):
    return [Guess(**{"goal": Goal.LABEL, "channel": None, "split": "train"} | fields,
                  rows=rows, values=values)]  # fmt: skip


MISDEEDS = {
    "raises": (
        lambda seen: 1 / 0,
        r"ZeroDivisionError: division by zero \(test_attacks.py:\d+\)",
    ),
    "exits": (lambda seen: sys.exit(3), "SystemExit: 3"),
    "runs out of memory": (lambda seen: torch.empty(2**52), "can't allocate memory"),
    "returns nothing": (lambda seen: None, "^guess must return a list of lb.Guess, got NoneType$"),
    "returns words": (
        lambda seen: ["label"],
        "^guess must return a list of lb.Guess, got one of str$",
    ),
    "wrong shape": (lambda seen: label(rows_of(seen), np.zeros((3, 3), int)), "shape"),
    "floats": (lambda seen: label(rows_of(seen), np.zeros(48)), "must be integers"),
    "NaN": (lambda seen: label(rows_of(seen), np.full(48, np.nan)), "must be integers"),
    "rows not shown": (lambda seen: label(rows_of(seen) + 1, np.zeros(48, int)), "recorded"),
    "easy rows": (lambda seen: label(rows_of(seen)[:5], np.zeros(5, int)), "each of the 48"),
    "no such channel": (
        lambda seen: label(rows_of(seen), np.zeros(48, int), channel="telepathy"),
        "channel",
    ),
    "view is no text": (lambda seen: label(rows_of(seen), np.zeros(48, int), view=3), "view"),
    "changes what was seen": (
        lambda seen: seen.messages[0].values.fill(0),
        "ValueError: assignment destination is read-only",
    ),
}


class Bad(Attack):
    """Does one of the misdeeds."""

    name: ClassVar[str] = "bad"
    source: ClassVar[Source] = Source("a test")
    threat: ClassVar[ThreatModel] = ThreatModel(frozenset({Goal.LABEL}), frozenset())
    misdeed: str

    def guess(self, seen, knowledge, rng):
        return MISDEEDS[self.misdeed][0](seen)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    bad = [Bad(misdeed=name) for name in MISDEEDS]
    (record,) = run(tmp_path_factory.mktemp("bad"), SAP(eta=50), attacks=[*bad, *ATTACKS])
    return record


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_misbehaving_attack_is_a_leak_with_a_reason(spoilt, misdeed):
    (leak,) = (x for x in spoilt.leaks if x.attack.params.get("misdeed") == misdeed)
    assert leak.status == ("out-of-memory" if "memory" in misdeed else "failed")
    assert leak.goal == Goal.LABEL
    assert leak.success is None
    assert re.search(MISDEEDS[misdeed][1], leak.reason), leak.reason


def test_results_of_the_other_attacks_stand(spoilt, tmp_path):
    (alone,) = run(tmp_path, SAP(eta=50))
    assert spoilt.status == "ok"
    assert spoilt.utility == alone.utility
    for name, goal in (("eia-nn", "inversion"), ("logit-gradient", "label"), ("prior", "label")):
        pair = (leak_of(r, name, goal=goal).success for r in (spoilt, alone))
        assert len(set(map(str, pair))) == 1
