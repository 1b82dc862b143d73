"""Every field of a record changed by itself, in a record of the very cell that is run again."""

from __future__ import annotations

import json
import os
import random

import pytest
from submitted import members, raw, resealed, zipped

from leakboard.bench.records import agreement, compare_runs
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.submissions.reproduction import LocalResources
from leakboard.bench.submissions.rerunning import Reruns
from leakboard.bench.submissions.verification import verify

SAMPLE = 25
"""Forgeries of an ordinary run; `tox run -e fuzz` tries all of them."""


def places(value, way=()):
    """The ways to all single values; of a list only its first part, of lists in it too."""
    if isinstance(value, dict) and value:
        for name, inside in value.items():
            yield from places(inside, (*way, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*way, 0))
    else:
        yield way


def forgeries(value):
    """Other values of the same type, and missing ones: those that a forger would try."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, -value - 2, 10**12]
    if isinstance(value, float):
        return [value / 2 + 0.01, -value - 1, 1e15]
    if isinstance(value, str):
        return [value + "x", ""] if value else ["x"]
    if value is None:
        return [0.0001, 7]
    return [[1]] if isinstance(value, list) else [{"x": 1.0}]


def changed(content, way, value):
    made = json.loads(json.dumps(content))
    at = made
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = value
    return made


def all_forgeries(content):
    found = []
    kinds = set()
    for way in places({k: v for k, v in content.items() if k != "sha256"}):
        at = content
        for step in way:
            at = at[step]
        found += [(way, value) for value in forgeries(at)]
    # One result of each attack stands for those with the same fields.
    for i, leak in enumerate(content["leaks"]):
        kind = (leak["goal"], leak["metric"], leak["status"])
        if kind not in kinds:
            kinds.add(kind)
            for name, value in leak.items():
                for way in places(value, ("leaks", i, name)):
                    at = content
                    for step in way:
                        at = at[step]
                    found += [(way, forged) for forged in forgeries(at)]
    return found


def outcome_of(file, content, key, real):
    contents = raw(real)
    contents[key] = resealed(content)
    file.write_bytes(zipped(members(contents)))
    here = LocalResources()
    return verify(file, Reruns(1, 0, Reporter(), here), here)


def is_named(report, way):
    notes = " ".join(what for _, outcome, what in report.lines if outcome != "refused")
    names = [str(step) for step in way if not isinstance(step, int)]
    return any(name in notes for name in names[1:] or names)


def test_every_changed_field_of_a_rerun_cell_is_refused_or_named(real, tmp_path, at_once):
    target = real[1]
    content = json.loads(raw(real)[target.key])
    tried = all_forgeries(content)
    assert len(tried) >= 300
    if os.environ.get("LEAKBOARD_FUZZ") != "full":
        tried = random.Random(5).sample(tried, SAMPLE)
    refused, named, accepted = 0, 0, []
    for way, value in tried:
        report = outcome_of(tmp_path / "a.zip", changed(content, way, value), target.key, real)
        if not report.sound or not report.repeated:
            refused += 1
        elif is_named(report, way):
            named += 1
        else:
            accepted.append((way, value))
    print(f"{len(tried)} forged records: {refused} refused, {named} named")
    assert accepted == []
    assert refused > named


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c.update(claim={"guarantee": "(ε, δ)-differential privacy", "parameters": {"epsilon": 0.0001, "delta": 1e-9}, "covers": "all", "unit": "example"}), "claim"),
        (lambda c: c["cost"].update(bytes_up=c["cost"]["bytes_up"] // 2), "cost.bytes_up"),
        (lambda c: c["cost"].update(bytes_up=-5), "greater than or equal to 0"),
        (lambda c: c["cost"].update(trained_parameters=1), "cost.trained_parameters"),
        (lambda c: c["cost"].update(train_seconds=1e8, total_seconds=1e9), "cost.train_seconds"),
        (lambda c: c["leaks"][0].update(epsilon=0.0001), "epsilon"),
        (lambda c: c["leaks"].append(c["leaks"][0]), "holds two results of the same attack"),
        (lambda c: c.update(schema_version=0), "greater than or equal to 1"),
        (lambda c: c.update(schema_version=-1), "greater than or equal to 1"),
        (lambda c: c["predictions"].update(truth=[1 - t for t in c["predictions"]["truth"]], predicted=[1 - t for t in c["predictions"]["predicted"]]), "predictions.truth"),
        (lambda c: c.update(loss=[value / 10 for value in c["loss"]]), "loss"),
    ],
)  # fmt: skip
def test_forgeries_that_were_once_accepted_are_refused(real, tmp_path, at_once, change, expected):
    content = json.loads(raw(real)[real[1].key])
    change(content)
    report = outcome_of(tmp_path / "a.zip", content, real[1].key, [real[1]])
    assert not report.sound
    why = " ".join(what for _, outcome, what in report.lines if outcome == "refused")
    assert expected in why


def test_another_machine_may_differ_in_its_digits_and_its_seconds(real):
    stated = real[1]
    utility = stated.utility.model_copy(update={"value": stated.utility.value + 1e-9})
    cost = stated.cost.model_copy(update={"train_seconds": stated.cost.train_seconds * 20})
    loss = [value * 1.0001 for value in stated.loss]
    other = stated.model_copy(update={"utility": utility, "cost": cost, "loss": loss})
    outcome, what = compare_runs(other, stated)
    assert outcome == "held"
    assert "utility, loss" in what
    assert "as with another processor" in what
    made = stated.provenance.model_copy(update={"threads": 96})
    assert (
        "number of threads"
        in compare_runs(other.model_copy(update={"provenance": made}), stated)[1]
    )


def test_counts_may_differ_with_the_secret_alone(real):
    def with_bytes(factor, secret):
        stated = real[1]
        cost = stated.cost.model_copy(update={"bytes_up": int(stated.cost.bytes_up * factor)})
        made = stated.provenance.model_copy(update={"secret": secret})
        return stated.model_copy(update={"cost": cost, "provenance": made})

    own = real[1].provenance.secret
    assert compare_runs(with_bytes(1.05, own), real[1])[0] == "refused"
    assert compare_runs(with_bytes(1.05, "0" * 16), real[1])[0] == "held"
    assert "another secret" in compare_runs(with_bytes(1.05, "0" * 16), real[1])[1]
    assert "another device" not in compare_runs(with_bytes(1.05, "0" * 16), real[1])[1]
    assert compare_runs(with_bytes(1 + 2 * agreement.COUNTS, "0" * 16), real[1])[0] == "refused"
