"""Submissions from outside: what is tampered with is refused, and nothing hostile does harm."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import leak, record
from rich.console import Console
from test_cli import run

from bench.contracts.cell import Cell, digest
from bench.contracts.channels import Channel
from bench.contracts.errors import LeakboardError
from bench.contracts.estimates import Estimate
from bench.contracts.record import Record
from bench.contracts.threat import Goal
from bench.records.agreement import compared
from bench.records.store import Store, to_text
from bench.running.reporting import Silent
from bench.scoring import metrics
from bench.scoring.rescoring import rescored
from bench.submissions import packing as submissions
from bench.submissions.packing import gather, opened, pack
from bench.submissions.rerunning import Again
from bench.submissions.untrusted import Refused, parsed, visible
from bench.submissions.verifying import gaps, verify

RNG = np.random.default_rng(5)
TRUTH = [0, 1] * 12


def share(hits, totals, chance):
    return metrics.share(np.array(hits), np.array(totals), chance)


def honest(seed=0, defense="sap", **fields) -> Record:
    """A record of which every number follows from its raw guesses."""
    predicted = [t if i % 5 else 1 - t for i, t in enumerate(TRUTH)]
    ones = [1] * len(TRUTH)
    right = [int(p == t) for p, t in zip(predicted, TRUTH, strict=True)]
    hits, tokens = [3, 1, 2, 0] * 5, [4] * 20
    inverted = leak(raw={"hits": hits, "tokens": tokens}, **fields).model_copy(
        update={"success": share(hits, tokens, 0.1), "units": 80}
    )
    labels = leak(
        attack="logit-gradient",
        goal=Goal.LABEL,
        channel=Channel.LOGITS,
        raw={"guess": predicted, "truth": TRUTH},
    ).model_copy(
        update={"success": share(right, ones, 0.5), "units": len(TRUTH), "metric": "accuracy"}
    )
    return record(
        defense,
        {"eta": None} if defense == "sap" else {},
        seed=seed,
        leaks=[inverted, labels],
        predictions={"predicted": predicted, "truth": TRUTH},
        undefended=True,
    ).model_copy(update={"utility": share(right, ones, 0.5)})


RECORDS = [honest(seed, defense) for seed in (0, 1) for defense in ("sap", "none")]


def raw(records):
    return {r.key: to_text(r).encode() for r in records}


def manifest(contents, **fields):
    entries = {
        key: {"suite": "mine", "sha256": hashlib.sha256(content).hexdigest()}
        for key, content in contents.items()
    }
    return json.dumps({"format": 1, "method": "My noise", "records": entries} | fields).encode()


def zipped(members, mode=stat.S_IFREG | 0o644, kind=zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of names and contents, as anybody can write one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as file:
        for name, content in members:
            info = zipfile.ZipInfo()
            info.filename = name  # as it is; the constructor would mend it
            info.external_attr, info.compress_type = mode << 16, kind
            file.writestr(info, content)
    return out.getvalue()


def members(contents, **fields):
    named = [(f"records/{key}.json", content) for key, content in contents.items()]
    return [("manifest.json", manifest(contents, **fields)), *named]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("submissions")


def verdict(place, content: bytes):
    """The report on a file, which the terminal can show; nothing else is there afterwards."""
    file = place / "given.zip"
    file.write_bytes(content)
    report = verify(file)
    console = Console(file=io.StringIO(), width=200)
    for part in report.parts():
        console.print(part)
    shown = console.file.getvalue()
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert [path.name for path in place.iterdir()] == ["given.zip"]
    assert file.read_bytes() == content
    return report


def why(report) -> str:
    return "\n".join(f"{check}: {what}" for check, out, what in report.lines if out == "refused")


def resealed(content: dict) -> bytes:
    """A record that was changed, with a key and a checksum that fit again."""
    content.pop("sha256", None)
    return json.dumps(content | {"sha256": digest(content)}).encode()


def changed(change, which=0):
    """The honest records, one of them changed; its hashes are those of the change."""
    content = raw(RECORDS)
    key = RECORDS[which].key
    value = json.loads(content[key])
    change(value)
    content[key] = resealed(value)
    return zipped(members(content))


def test_honest_records_are_accepted(place):
    report = verdict(place, zipped(members(raw(RECORDS))))
    assert report.accepted, why(report)
    assert len(report.records) == 4


# Packing


def test_same_records_give_the_same_bytes_and_come_back_as_they_were(tmp_path):
    for r in RECORDS:
        Store(tmp_path / "mine").write(r)
    one, two = (pack(gather({"mine": tmp_path / "mine"}, None, "", "")) for _ in range(2))
    assert one == two
    (tmp_path / "a.zip").write_bytes(one)
    assert opened(tmp_path / "a.zip").records == raw(RECORDS)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"link": "http://a.org"}, "https"),
        ({"link": "javascript:alert(1)"}, "https"),
        ({"link": "https://user@a.org/"}, "https"),
        ({"link": 'https://a.org/"onclick='}, "characters of a URL"),
        ({"link": "https://a.org/" + "a" * 300}, "300"),
        ({"note": "a\x1b[2Jb"}, "U.001B"),
        ({"note": "a\u202eb"}, "U.202E"),
        ({"method": "two\nlines"}, "U.000A"),
        ({"method": ""}, "at least 1"),
    ],
)
def test_links_names_and_notes_that_could_do_harm_are_refused(place, tmp_path, fields, expected):
    report = verdict(place, zipped(members(raw(RECORDS), **fields)))
    assert not report.accepted
    assert expected.replace(".", "+") in why(report) or expected in why(report)
    Store(tmp_path / "mine").write(RECORDS[0])
    with pytest.raises(LeakboardError, match=expected.replace("U.", r"U\+")):
        gather({"mine": tmp_path / "mine"}, **{"method": None, "link": "", "note": "", **fields})


def test_no_records_and_damaged_records_are_not_packed(tmp_path):
    with pytest.raises(LeakboardError, match="holds no records"):
        gather({"mine": tmp_path}, None, "", "")
    Store(tmp_path).write(RECORDS[0]).write_text("{}")
    with pytest.raises(LeakboardError, match="checksum"):
        gather({"mine": tmp_path}, None, "", "")


@pytest.mark.parametrize(
    ("method", "slug"),
    [("My Noise, v2!", "my-noise-v2"), ("../../etc", "etc"), ("Größe", "grosse"), ("漢字", None)],
)
def test_the_folder_of_a_method_has_a_harmless_name(method, slug):
    made = submissions.Manifest.model_validate_json(manifest(raw(RECORDS), method=method)).slug
    if slug == "grosse":
        slug = "groe"  # ß has no ASCII part
    assert made == (slug or f"submission-{min(r.key for r in RECORDS)}")


# Tampering


def test_a_success_that_does_not_follow_from_the_guesses_is_found(place):
    def better(content):
        content["leaks"][0]["success"] |= {"value": 0.2, "low": 0.1, "high": 0.3}

    report = verdict(place, changed(better))
    assert "eia-nn inversion representations train token accuracy: value is stated as 0.2" in why(
        report
    )
    assert "give 0.375" in why(report)
    assert RECORDS[0].key in why(report)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("success", "value", 0.2), ("success", "low", 0.0), ("success", "high", 1.0),
        ("success", "n", 4000), ("leak", "units", 10**6), ("leak", "ceiling", 19.93),
        ("utility", "value", 0.99), ("utility", "low", 0.5), ("utility", "chance", 0.1),
    ],
)  # fmt: skip
def test_every_number_that_the_guesses_decide_is_compared(place, where, name, value):
    def other(content):
        at = {"success": content["leaks"][0]["success"], "leak": content["leaks"][0],
              "utility": content["utility"]}  # fmt: skip
        at[where][name] = value

    assert f"{name} is stated as" in why(verdict(place, changed(other)))


@pytest.mark.parametrize(
    "guesses",
    [
        {}, {"hits": [1]}, {"hits": [5], "tokens": [4]}, {"hits": [1, 1], "tokens": [4]},
        {"hits": [-1], "tokens": [4]}, {"hits": [], "tokens": []}, {"hits": [0], "tokens": [0]},
        {"hits": [1] * 100_001, "tokens": [1] * 100_001}, {"guess": [1], "truth": [1]},
    ],
)  # fmt: skip
def test_raw_guesses_that_cannot_be_are_refused(place, guesses):
    report = verdict(place, changed(lambda content: content["leaks"][0].update(raw=guesses)))
    assert "the raw guesses give nothing" in why(report)


def test_labels_that_would_fill_the_memory_are_not_scored():
    huge = {"guess": [0, 10**9], "truth": [0, 1]}
    label = {"attack": "kmeans", "goal": Goal.LABEL, "view": "worst"}
    for metric, values in (
        ("matched accuracy", huge),
        ("AUC (sign-free)", huge | {"truth": [0, 10**9]}),
    ):
        lied = leak(raw=values, **label).model_copy(update={"metric": metric})
        (mismatch,) = rescored(record(leaks=[lied], utility=None)).mismatches
        assert str(mismatch.recomputed).startswith("nothing")


def test_a_metric_that_is_not_known_is_not_passed_over(place):
    report = verdict(place, changed(lambda content: content["leaks"][0].update(metric="my score")))
    assert "knows no inversion by 'my score'" in why(report)


def test_what_is_not_scored_again_is_said(place):
    report = verdict(place, zipped(members(raw(RECORDS))))
    assert ("not re-scored", "note", "chance of eia-nn") in report.lines


def test_record_that_is_not_the_one_of_the_manifest_is_refused(place):
    content = raw(RECORDS)
    named = members(content)
    key = RECORDS[0].key
    other = to_text(RECORDS[0].model_copy(update={"reason": "other"})).encode()
    named = [(n, other if key in n else c) for n, c in named]
    assert "SHA-256 differs" in why(verdict(place, zipped(named)))


def test_checksum_inside_a_record_is_compared(place):
    content = raw(RECORDS)
    key = RECORDS[0].key
    content[key] = content[key].replace(b'"reason": ""', b'"reason": "x"')
    assert "does not match its checksum" in why(verdict(place, zipped(members(content))))


@pytest.mark.parametrize("how", ["name", "key", "cell"])
def test_forged_key_is_refused(place, how):
    content = raw(RECORDS)
    value = json.loads(content.pop(RECORDS[0].key))
    forged = "0123456789abcdef"
    if how == "cell":
        value["cell"]["defense"]["params"] = {"eta": 10.0}
    else:
        value["key"] = forged if how == "key" else value["key"]
    content[forged if how == "name" else RECORDS[0].key] = resealed(value)
    assert "do not belong together" in why(verdict(place, zipped(members(content))))


def test_missing_seed_is_named(place):
    report = verdict(place, zipped(members(raw(RECORDS[:3]))))
    assert "mine: 1 settings lack seed 1, the first of them none" in why(report)


def test_built_in_suite_needs_all_of_its_seeds(place):
    content = raw(RECORDS[:2])
    fake = json.loads(manifest(content))
    for entry in fake["records"].values():
        entry["suite"] = "sap-sst2"  # of three seeds
    named = [("manifest.json", json.dumps(fake).encode()), *members(content)[1:]]
    assert "sap-sst2: 2 settings lack seed 1, 2" in why(verdict(place, zipped(named)))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c["leaks"].pop(), "logit-gradient {} was run on other cells of mine, not here"),
        (lambda c: c.update(leaks=[]), "was attacked by nothing"),
        (lambda c: c.update(status="failed", reason="oh"), "ended failed: oh; run it again"),
        (lambda c: c.update(status="diverged"), "does not say why"),
        (lambda c: c.update(utility=None), "has no utility"),
        (lambda c: c["leaks"][0].update(success=None), "nothing was measured"),
        (lambda c: c["leaks"][0].update(status="failed"), "does not say why"),
        (lambda c: c["provenance"].update(dirty=True), "uncommitted changes"),
        (lambda c: c.update(undefended=False), "says the wrong thing"),
        (lambda c: c["predictions"].update(truth=[1, 0] * 12), "with other labels"),
        (lambda c: c["leaks"][0]["success"].update(chance=2.0), "has a chance of 2.0"),
    ],
)
def test_incomplete_and_contradictory_records_are_refused(place, change, expected):
    assert expected in why(verdict(place, changed(change)))


def test_what_attackers_train_themselves_need_not_meet_every_attack():
    target = RECORDS[0]
    cell = target.cell.model_copy(update={"shadow": 0})
    shadow = target.model_copy(update={"cell": cell, "key": cell.key, "leaks": target.leaks[:1]})
    assert list(gaps("mine", [target, shadow])) == []
    assert list(gaps("mine", [target, honest().model_copy(update={"leaks": target.leaks[:1]})]))


def test_certificate_of_a_defended_cell_is_refused(place):
    defended = honest().model_copy(update={"undefended": False})
    found = defended.leaks[0].model_copy(update={"certificate": True})
    defended = defended.model_copy(update={"leaks": [found, defended.leaks[1]]})
    report = verdict(place, zipped(members(raw([defended]))))
    assert "is certified on a defended cell" in why(report)


# Each way of scoring, on records of this project


def test_published_records_follow_from_their_raw_guesses():
    from test_store import PUBLISHED

    from bench.records.store import from_text

    metrics_seen: set[str] = set()
    for path in PUBLISHED:
        found = from_text(path)
        metrics = {leak.metric for leak in found.leaks if leak.success}
        if not metrics <= metrics_seen:
            metrics_seen |= metrics
            assert not rescored(found).mismatches, path
    assert {"token accuracy", "accuracy", "AUC (sign-free)", "matched accuracy"} <= metrics_seen


def test_what_a_released_model_remembers_is_scored_again():
    from bench.scoring import memory, one_run
    from bench.tasks import planting

    ranks, member = list(range(2, 42, 2)), [0, 1, 0, 1, 0] * 4
    auc = one_run.auc(np.array(ranks) / 2, np.array(member, bool))
    epsilon = one_run.audit(np.array(ranks) / 2, np.array(member, bool))
    bits = planting.CEILING - np.log2(np.array([2, 20, 2000]) / 2)
    members_leak = leak(
        attack="membership", goal=Goal.MEMBERSHIP, epsilon=epsilon,
        raw={"twice_rank": ranks, "member": member},
    ).model_copy(update={"success": auc, "units": 20, "metric": "AUC"})  # fmt: skip
    canaries = leak(
        attack="canary-exposure", goal=Goal.MEMORISATION, ceiling=planting.CEILING,
        raw={"twice_rank": [2, 20, 2000]},
    ).model_copy(update={"success": memory.estimate(bits, "exposure"), "units": 3, "metric": "exposure"})  # fmt: skip
    hit = leak(attack="canary-exposure", goal=Goal.MEMORISATION, raw={"hit": [1, 0, 1]}).model_copy(
        update={
            "success": memory.estimate(np.array([1.0, 0, 1]), "extraction"),
            "units": 3,
            "metric": "extracted",
        }
    )
    few = leak(attack="membership", goal=Goal.MEMBERSHIP).model_copy(
        update={
            "success": one_run.tpr_at(memory.LOW, np.array(ranks) / 2, np.array(member, bool)),
            "units": 20,
            "metric": "TPR at 1% FPR",
        }
    )
    good = record(leaks=[members_leak, canaries, hit, few], utility=None)
    assert rescored(good).mismatches == []
    assert rescored(good).numbers == 4 * 7 + 1
    lied = [
        members_leak.model_copy(update={"epsilon": epsilon + 0.1}),
        canaries.model_copy(update={"ceiling": 100.0}),
        hit.model_copy(update={"raw": {"hit": [1, 0, 0]}}),
        few.model_copy(update={"epsilon": 1.0}),
    ]
    for i, one in enumerate(lied):
        leaks = [one if i == j else own for j, own in enumerate(good.leaks)]
        assert rescored(good.model_copy(update={"leaks": leaks})).mismatches, one.attack.name


def test_the_moment_that_counts_is_the_worst_of_its_curve():
    own = record(utility=None).leaks[0].success
    for value, step, wrong in ((0.5, 3, 0), (0.6, 3, 2), (0.5, 4, 1)):
        point = {"step": step, "part": 0, "recipient": "v"}
        point["success"] = own.model_copy(update={"value": value})
        told = leak(goal=Goal.LABEL, step=3, curve=[point])
        found = [m.what for m in rescored(record(leaks=[told], utility=None)).mismatches]
        assert len(found) == wrong + 1  # the first: it has no raw guesses


# Another run


def test_another_run_is_compared_to_the_last_digit_or_by_intervals():
    one = RECORDS[0]
    assert compared(one, one)[0] == "held"
    assert "every number came out the same" in compared(one, one)[1]
    near = one.leaks[0].success.model_copy(update={"value": one.leaks[0].success.value + 1e-3})
    far = Estimate(value=0.99, low=0.98, high=1.0, n=20, chance=0.1)
    for success, outcome, told in (
        (near, "held", "95 % interval"),
        (far, "refused", "here ok 0.990"),
    ):
        leaks = [one.leaks[0].model_copy(update={"success": success}), one.leaks[1]]
        found = compared(one, one.model_copy(update={"leaks": leaks}))
        assert found[0] == outcome
        assert told in found[1]
    assert "did not come out here" in compared(one, one.model_copy(update={"leaks": []}))[1]
    broken = one.model_copy(update={"status": "failed", "reason": "no"})
    assert compared(one, broken)[0] == "refused"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"defense": "not-here"}, "unknown defense"),
        ({"task": "sst2"}, "its data 'sst2' are not here"),
        ({"task": "somebodys"}, "its data"),
        ({"model": "evil/model"}, "give --model FOLDER"),
        ({"params": {"eta": "../../x"}}, "is a path, which is not followed"),
        ({}, "cannot be run again here"),
    ],
)
def test_what_cannot_be_run_again_is_said_and_not_followed(monkeypatch, tmp_path, change, expected):
    monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
    again = list(Again(1, 0, Silent(), tmp_path)([record(**change)]))
    assert again[0] == ("note", "0 of 1 cells could be run again here (seed 0)")
    assert expected in again[1][1]


def test_a_real_cell_runs_again_to_the_last_digit_and_a_lie_about_it_is_found(
    tmp_path, monkeypatch
):
    import cells

    from bench.running import plan as planning
    from defenses.none import NoDefense

    monkeypatch.setattr(planning, "load_backbone", cells.load_tiny)
    (real,) = cells.run(tmp_path, NoDefense())
    ((outcome, what),) = Again(1, 0, Silent())([real])
    assert outcome == "held"
    assert "every number came out the same" in what
    lie = real.utility.model_copy(update={"value": 0.0, "low": 0.0, "high": 0.01})
    ((outcome, what),) = Again(1, 0, Silent())([real.model_copy(update={"utility": lie})])
    assert outcome == "refused"
    assert "utility 0.000" in what


# The container


BOMB = b"0" * (submissions.MEMBER + 2**20)


def test_a_bomb_is_stopped_while_it_is_read(place):
    named = [*members(raw(RECORDS[:1]))[:1], ("records/" + "0" * 16 + ".json", BOMB)]
    packed = zipped(named)
    assert len(packed) < 10**6
    assert "unpacks to more than" in why(verdict(place, packed))


def test_no_more_is_unpacked_than_is_taken():
    class Endless:
        def read(self, size=-1):
            assert 0 <= size <= submissions.MEMBER + 1
            return b"0" * size

    with pytest.raises(Refused, match="unpacks to more than"):
        submissions._at_most(Endless(), 0)
    with pytest.raises(Refused, match="128 in all"):
        submissions._at_most(io.BytesIO(b"0" * 10), submissions.WHOLE)


def test_a_bomb_with_a_header_that_lies_is_stopped(place):
    packed = bytearray(zipped([("manifest.json", BOMB)]))
    real, lie = struct.pack("<L", len(BOMB)), struct.pack("<L", 10)
    assert packed.count(real) == 2  # of the member, and of the directory
    report = verdict(place, bytes(packed.replace(real, lie)))
    assert "cannot be unpacked" in why(report) or "not JSON" in why(report)


@pytest.mark.parametrize(
    "name",
    ["../evil.json", "/etc/passwd", "records/../../x.json", "records\\0123456789abcdef.json", "C:\\x",
     "records/0123456789abcdef.json\x00.exe", "records/0123456789ABCDEF.json", "records/", "x/y/z",
     "records/0123456789abcdef.json/", "manifest.json/../x", "records/0123456789abcdef.json\n",
     "\u202emanifest.json", "[red]x[/blue].json", ""],
)  # fmt: skip
def test_no_other_name_is_taken(place, name):
    report = verdict(place, zipped([*members(raw(RECORDS)), (name, b"{}")]))
    assert "only manifest.json and records/" in why(report)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(place, kind):
    assert "as a link" in why(verdict(place, zipped(members(raw(RECORDS)), mode=kind | 0o777)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_stands_twice_is_refused(place):
    named = members(raw(RECORDS))
    assert "twice" in why(verdict(place, zipped([*named, named[-1]])))


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_compress_are_refused(place, kind):
    assert "unusual" in why(verdict(place, zipped(members(raw(RECORDS)), kind=kind)))


def test_a_directory_of_a_million_entries_is_refused_before_it_is_read(place):
    end = submissions.END.pack(b"PK\x05\x06", 0, 0, 1, 1, 2**25, 0, 0)
    assert "holds more than" in why(verdict(place, b"\0" * 2**20 + end))


def test_a_directory_that_stands_elsewhere_is_refused_before_it_is_read(place):
    end = submissions.END.pack(b"PK\x05\x06", 0, 0, 1, 1, 46, 0, 0)
    assert "of a kind" in why(verdict(place, submissions.ZIP64 + b"\0" * 16 + end))


def test_a_large_file_is_refused_unread(place):
    file = place / "given.zip"
    with file.open("wb") as out:
        out.truncate(submissions.FILE + 1)
    assert "larger than" in why(verify(file))


def test_no_such_file_is_bad_input(place):
    with pytest.raises(LeakboardError, match="no such file"):
        verify(place / "absent.zip")


# Foreign JSON


@pytest.mark.parametrize(
    "text",
    ['{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', '{"a": 1, "a": 2}', "[" * 10**5, '"\\ud800"',
     "[" * 14 + "]" * 14, "1" * 5000, str(2**63), '"\\u202e"', '"\\u001b[2J"', '{"\\u0000": 1}',
     '"' + "a" * 10_001 + '"', "\ufeff{}", ""],
)  # fmt: skip
def test_json_that_would_trip_others_is_refused(text):
    with pytest.raises(Refused):
        parsed(text.encode(), "it")


def test_what_people_write_is_not_refused():
    for text in ("naïve café 漢字", "می‌خواهم", "👩‍💻", "<script>alert(1)</script>", "[red]"):
        assert visible(text) == text
        assert parsed(json.dumps({text: [text]}).encode(), "it") == {text: [text]}


# A thousand strangers

strange = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=20),
    st.sampled_from([
        "<script>alert(1)</script>", "../../etc/passwd", "[/red]", "\x1b]0;x\x07", "\u202egnp.exe",
        "{{7*7}}", "${jndi:ldap://x}", "\ud800", 10**5000 % 10**400, float("nan"), 1e308, [], {},
        "a" * 20_000, [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], {"__class__": 1}, -1, 2**63, True,
    ]),
    st.lists(st.integers(-5, 2**65), max_size=4), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


def places(value, at=()):
    """The ways to every value inside a JSON value."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, x in list(inside)[:30]:
        yield (*at, key)
        yield from places(x, (*at, key))


SAMPLE = json.loads(to_text(RECORDS[0]))
WAYS = list(places(SAMPLE))
MANIFEST_WAYS = list(places(json.loads(manifest(raw(RECORDS[:1])))))


def put(value, way, new, how):
    value = json.loads(json.dumps(value))
    at = value
    for step in way[:-1]:
        at = at[step]
    if how == "remove":
        del at[way[-1]]
    elif how == "add" and isinstance(at, dict):
        at[str(new)[:50]] = new
    else:
        at[way[-1]] = new
    return value


@given(st.data())
@settings(max_examples=1000)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_thousand_hostile_submissions_are_refused_or_harmless(place, data):
    draw, before = data.draw, sorted(place.parent.iterdir())
    kind = draw(st.sampled_from(["record", "record", "manifest", "bytes", "members", "noise"]))
    content = raw(RECORDS[:1])
    key = RECORDS[0].key
    named = members(content)
    if kind == "record":
        value = put(SAMPLE, draw(st.sampled_from(WAYS)), draw(strange), draw(st.sampled_from(["set", "remove", "add"])))  # fmt: skip
        try:
            if draw(st.booleans()):  # as a forger would who knows the program
                value["key"] = Cell.model_validate(value["cell"]).key
            sealed = resealed(value)
        except (ValueError, KeyError, TypeError, OverflowError):
            sealed = json.dumps(value).encode("utf-8", "replace")
        name = value["key"] if isinstance(value.get("key"), str) else key
        content = {name if len(name) == 16 else key: sealed}
        try:
            named = members(content)
        except UnicodeEncodeError:
            named = members({key: sealed})
    elif kind == "manifest":
        value = put(json.loads(named[0][1]), draw(st.sampled_from(MANIFEST_WAYS)), draw(strange), draw(st.sampled_from(["set", "remove", "add"])))  # fmt: skip
        named[0] = ("manifest.json", json.dumps(value).encode("utf-8", "replace"))
    elif kind == "members":
        name = draw(
            st.one_of(st.text(max_size=30), st.sampled_from(["../x", "/x", "manifest.json"]))
        )
        named.insert(
            draw(st.integers(0, 2)), (name.encode("utf-8", "ignore").decode(), b"[" * 5000)
        )
    packed = bytearray(zipped(named, draw(st.sampled_from([0, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR])) if kind == "members" else stat.S_IFREG))  # fmt: skip
    if kind == "bytes":
        for _ in range(draw(st.integers(1, 8))):
            packed[draw(st.integers(0, len(packed) - 1))] = draw(st.integers(0, 255))
        del packed[draw(st.one_of(st.just(len(packed)), st.integers(0, len(packed)))) :]
    if kind == "noise":
        packed = bytearray(draw(st.binary(max_size=200)))
    report = verdict(place, bytes(packed))
    assert report.accepted or why(report)
    assert sorted(place.parent.iterdir()) == before
    if report.accepted:  # then it says what the honest one says
        for found in report.records:
            assert found.utility == RECORDS[0].utility
            for one, other in zip(found.leaks, RECORDS[0].leaks, strict=True):
                assert (one.success is None) == (other.success is None)
                if one.success:
                    assert abs(one.success.value - other.success.value) < 1e-5


# The commands


@pytest.fixture
def leakboard(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for r in RECORDS:
        Store(tmp_path / "mine").write(r)
    return lambda *words: run(monkeypatch, capsys, *words)


def test_from_records_to_a_published_folder_and_back(leakboard, tmp_path):
    code, out, err = leakboard(
        "submit", "mine", "--method", "My noise", "--link", "https://a.org/p"
    )
    assert code == 0, out + err
    code, out, err = leakboard("verify", "my-noise.zip", "--rerun", "none", "--accept")
    assert code == 0, out + err
    place = tmp_path / "results/published/my-noise"
    assert {p.stem for p in place.iterdir()} == {*raw(RECORDS), "submission"}
    store = Store(place)
    assert len(store.read_all()) == 4
    assert store.problems == []
    assert json.loads((place / "submission.json").read_text())["link"] == "https://a.org/p"
    assert leakboard("verify", place, "--rerun", "none")[0] == 0
    code, _, err = leakboard("verify", "my-noise.zip", "--rerun", "none", "--accept")
    assert code == 2
    assert "not overwritten" in err
    (place / f"{RECORDS[0].key}.json").unlink()
    assert leakboard("verify", place, "--rerun", "none")[0] == 1


def test_verify_ends_with_one_on_a_refusal_and_two_on_bad_input(leakboard, tmp_path):
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    code, out, _ = leakboard("verify", "bad.zip", "--accept")
    assert code == 1
    assert "is no zip file" in out
    assert not (tmp_path / "results").exists()
    assert leakboard("verify", "absent.zip")[0] == 2
    assert leakboard("verify", "bad.zip", "--rerun", "many")[0] == 2


def test_submit_writes_nothing_that_verify_would_refuse(leakboard, tmp_path):
    Store(tmp_path / "mine").path(RECORDS[0].key).unlink()
    code, out, err = leakboard("submit", "mine")
    assert code == 2
    assert "lack seed 0" in out
    assert "was not written" in err
    assert not (tmp_path / "mine.zip").exists()


def test_submit_without_records_says_what_to_run(leakboard):
    code, _, err = leakboard("submit", "smoke")
    assert code == 2
    assert "Run the suite first: leakboard run smoke" in err
