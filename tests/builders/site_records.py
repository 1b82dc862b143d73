"""Records for a site: plain ones, ones over time, and ones that are an attempt to do harm."""

from __future__ import annotations

import hashlib

from records import estimate, leak, record

from leakboard.bench.contracts.record import Estimate, Point
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.records.store import Store
from leakboard.bench.tasks.planting import CEILING

EVIL = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\' {{ 7*7 }} $a_{$'
LINK = "https://example.org/method?a=1"
PATHS = "../../../../tmp/escaped"


def curve():
    """Four moments of training."""
    at = (0, 10, 20, 30)
    return [Point(step=s, part=0, recipient="vendor", success=estimate(0.5 + s / 100)) for s in at]


def plain_records():
    """A defense at three strengths, no defense and the untuned model on one task, three seeds each."""
    found = []
    for seed in (0, 1, 2):
        jitter = 0.004 * seed
        for eta, utility, success in ((None, 0.9, 0.99), (75.0, 0.8, 0.5), (50.0, 0.7, 0.2)):
            leaks = [
                leak(success + jitter),
                leak(
                    0.9,
                    "logit-gradient",
                    Goal.LABEL,
                    0.5,
                    view="worst",
                    curve=[] if seed else curve(),
                ),
            ]
            undefended = eta is None
            found.append(
                record("sap", {"eta": eta}, seed, utility + jitter, leaks, undefended=undefended)
            )
        found.append(record("none", {}, seed, 0.91 + jitter, [leak(1.0)], undefended=True))
        found.append(record("untuned", {}, seed, 0.5, [], undefended=True))
    found.append(record("sap", {"eta": 25.0}, 0, 0.6, [leak(0.1)]))
    return found


def over_time():
    """Two defenses whose label leak was followed, and a canary that one of them remembers."""
    label = leak(
        0.8, "spectral", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS, view="worst", curve=curve()
    )
    bits = Estimate(value=12.0, low=0.0, high=CEILING, n=1, chance=1.443)
    canary = leak(0.5, "canary-exposure", Goal.MEMORISATION, channel=Channel.MODEL)
    told = {"success": bits, "metric": "exposure", "ceiling": CEILING, "view": "planted 10 times"}
    canary = canary.model_copy(update=told)
    plain = record("none", leaks=[label, canary], task="sst2", undefended=True)
    return [plain, record("p3eft", {"weight": 0.1}, leaks=[label], task="sst2")]


def hostile_records():
    """Every text that a record may hold is an attempt to run a script, or to leave the folder."""
    evil = [
        leak(0.4, EVIL, params={EVIL: EVIL}, view=EVIL, attribute=EVIL, goal=Goal.ATTRIBUTE),
        leak(None, PATHS, status="failed", reason=EVIL, channel=None),
    ]
    return [
        record(EVIL, {EVIL: EVIL, "eta": 1}, 0, 0.8, evil, EVIL, EVIL, utility_metric=EVIL),
        record(PATHS, {"eta": 2}, 0, None, [leak(0.3)], PATHS, PATHS),
        record("none", {}, 7, None, [], status="failed", reason=EVIL, undefended=True),
    ]


def kept(folder, records):
    store = Store(folder)
    for one in records:
        store.write(one)
    return folder


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def many_records(n):
    """About `n` records: five seeds of eight defenses at several settings, on ten tasks, each attacked by four attacks."""
    tasks, seeds = [f"task-{number}" for number in range(10)], range(5)
    knobs = {
        **dict.fromkeys(("sap", "sap-cti", "rapt"), "eta"),
        "dpnr": "epsilon",
        "cape": "epsilon",
        "randomised-response": "epsilon",
        "dc": "weight",
        "p3eft": "weight",
    }
    settings = max(n // (len(tasks) * len(seeds) * len(knobs)) - 1, 1)

    def one(task, defense, params, seed, strength, **fields):
        jitter = 0.001 * ((7 * seed + len(defense)) % 5)
        found = [
            leak(0.99 - 0.8 * strength + jitter),
            leak(0.95 - 0.8 * strength + jitter, "eia-map"),
            leak(0.99 - 0.4 * strength + jitter, "logit-gradient", Goal.LABEL, 0.5),
            leak(0.9 - 0.3 * strength + jitter, "spectral", Goal.LABEL, 0.5),
        ]
        return record(
            defense, params, seed, 0.95 - 0.3 * strength**2 + jitter, found, task, **fields
        )

    for task in tasks:
        for seed in seeds:
            yield one(task, "none", {}, seed, 0.0, undefended=True)
            yield record("untuned", {}, seed, 0.5, [], task, undefended=True)
            for defense, knob in knobs.items():
                yield one(task, defense, {knob: None}, seed, 0.0, undefended=True)
                for number in range(1, settings + 1):
                    yield one(task, defense, {knob: float(number)}, seed, number / (settings + 1))
