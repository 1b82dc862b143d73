"""The rules: which rows stand against which, along what, by which metric, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.answers import audits, halving, headlines, idle
from leakboard.leaderboards.findings.engine import LEAKS, USEFUL, Contrast, Level
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.tables import (
    ANY_VALUE,
    BY_AUTHORS,
    LEAKAGE_WORDS,
    PHASE1_TRAINING,
    Metric,
    Reader,
    ResultsTable,
    Rows,
)

INPUTS, LABELS, ATTRIBUTES = Goal.INVERSION, Goal.LABEL, Goal.ATTRIBUTE
IDENTITY = Goal.REIDENTIFICATION
SECRETS, MEMBERS, MODEL = Goal.MEMORISATION, Goal.MEMBERSHIP, Goal.MODEL
LEAKAGE: Metric = "leakage"
UTILITY: Metric = "utility"
FIVE = 0.05
"""Margin of five points of leakage."""

INPUT_NOISE = ("sap", "sap-cti", "rapt", "dpnr", "cape", "custext-plus", "santext-plus")
PLAIN = Rows(("none", "dpsgd"), undefended=True)
SAP, RAPT = Rows("sap", {"eta": ANY_VALUE, "bottom": "frozen"}), Rows("rapt", {"eta": ANY_VALUE})
BOTH = Rows("sap+frozen", {"eta": ANY_VALUE})
P3EFT = Rows("p3eft", undefended=False)
DIRECT = Rows("jft", {"phase1": "direct", "epsilon": ANY_VALUE})
FIRST_PHASE = ("miss_rate", "light", "checked", *PHASE1_TRAINING)
"""Parameters that only one kind of JFT's first phase has, and the training of that phase."""
LEFT = "{a} at {at} leaks {x} of the {goal} that are read without it on {task} ({settings}{span})."
ATTACKER = "reads {x} of the tokens on {task}, {other} {y} ({a}, {at}; {n} of {settings})."


def _p3eft(**params: Any) -> Rows:
    return Rows("p3eft", params, undefended=False)


def _jft(**params: Any) -> Rows:
    return Rows("jft", params)


def _attacks(name: str, rows: Rows, goal: Goal, a: Reader, b: Reader, **words: Any) -> Contrast:
    """Comparison of the success of attacks `a` and `b` on the same transcripts."""
    return Contrast(name, "success", rows, rows, goal, reader=a, versus=b, **words)


# fmt: off
RULES: tuple[Contrast | Level, ...] = (
    # Texts and labels at once
    Contrast("both", LEAKAGE, BOTH, SAP, LABELS,
        less="{a} leaks {x} of the labels on {task} to {attack}, and SAP {y} to {other} ({at}; {n} of {pairs}).",
        more=LEAKS["more"]),
    Contrast("both", LEAKAGE, BOTH, SAP, INPUTS, more=LEAKS["more"], less=LEAKS["less"]),
    Contrast("both", UTILITY, BOTH, SAP, **USEFUL),
    Level("labels", Rows("p3eft", {"servers": "one"}, undefended=False), LABELS,
        "P³EFT with one server does not hide labels on {tasks}: attacks such as {attack} recover all of them ({settings}).",
        least=0.95),
    Level("labels", Rows("dc", undefended=False), LABELS,
        "DC does not hide labels from a server that sees gradients: attacks recover all of them on {tasks} ({settings}).",
        least=0.95),
    Level("elsewhere", Rows(), LABELS,
        "Labels also leak under {defenses}: even the best of {settings} leaks {x}.", least=0.95, elsewhere=True),
    Level("elsewhere", Rows(), INPUTS,
        "Inputs also leak under {defenses}: even the best of {settings} leaks {x}.", least=0.95, elsewhere=True),
    Level("text", Rows("sap", undefended=False, task=("dialogues", "replies")), LABELS,
        "Noise at the input hides no training text of language models: {attack} and others read all on {tasks} "
        "({settings}).", least=0.95),
    Level("identity", Rows(("sap", "sap-cti"), {"eta": (90, 110)}), IDENTITY,
        "Noisy words tell {attack} which text was sent for {success_percent} of texts on {tasks} at η ≥ 90 ({settings}).",
        least=0.95),
    # What the authors' own attacks miss
    _attacks("authors", Rows(("p3eft", "dc"), undefended=False), LABELS, Reader(), BY_AUTHORS,
        more="The authors' attacks underestimate what {a} leaks on {task}: {other} scores {y}, {attack} {x} "
        "(AUC of labels)."),
    Contrast("authors", LEAKAGE, P3EFT, Rows("none"), LABELS, reader=BY_AUTHORS,
        less="By the authors' own attacks, P³EFT leaks clearly fewer labels on {task} at {at}: {x} ({n} of {settings}).",
        more="By the authors' own attacks, P³EFT leaks clearly more labels on {task} at {at}: {x} ({n} of {settings}).",
        margin=FIVE),
    Contrast("servers", LEAKAGE, _p3eft(servers="per-adapter"), _p3eft(servers="one"), LABELS,
        differ=("alternating",),
        less="P³EFT leaks fewer labels to a server for each adapter than to one server on {task}: {x}, not {y}.",
        same="P³EFT leaks as many labels to a server for each adapter as to one server on {task} ({pairs}).",
        margin=FIVE),
    Contrast("servers", LEAKAGE, _p3eft(servers=("per-call", "per-vector", "separate")), _p3eft(servers="one"),
        LABELS,
        less="P³EFT leaks fewer labels to a server that sees single calls than to one server on {task}: {x}, not {y}.",
        same="P³EFT leaks as many labels to a server that sees single calls as to one server on {task} ({pairs}).",
        margin=FIVE),
    # Where a model is cut, and what is trained below
    Contrast("trainable", LEAKAGE, Rows("sap", {"eta": ANY_VALUE, "bottom": "trainable"}), SAP, INPUTS,
        more="SAP leaks more inputs with a trained bottom than with a frozen one on {task}: {x} against {y} at {at} "
        "({n} of {pairs}).",
        less="SAP leaks fewer inputs with a trained bottom than with a frozen one on {task}: {x} against {y} at {at}."),
    Level("depth", Rows("sap", {"eta": None}, cut=(2, 3, 4, 5)), INPUTS,
        "Depth alone does not hide inputs: behind {cuts} blocks, attacks read at least {success_percent} of "
        "the tokens on {tasks} ({settings}).", least=0.95),
    Contrast("depth", LEAKAGE, Rows("sap", {"eta": ANY_VALUE}, cut=5), Rows("sap", {"eta": ANY_VALUE}, cut=0), INPUTS,
        more="Noise hides less behind five blocks than at the embeddings on {task}: at {at}, {x} of the inputs leak, "
        "not {y}."),
    # Variants
    Contrast("variants", UTILITY, Rows("sap-cti"), Rows("sap"), at=("eta", "share"), **USEFUL),
    Contrast("variants", LEAKAGE, Rows("sap-cti"), Rows("sap"), INPUTS, margin=0.03, at=("eta", "share"), **LEAKS),
    Contrast("prompts", UTILITY, RAPT, SAP, **USEFUL),
    Contrast("prompts", LEAKAGE, RAPT, SAP, INPUTS, margin=FIVE, **LEAKS),
    Contrast("prompts", UTILITY, Rows("rapt", {"eta": ANY_VALUE, "reconstruction": True}),
        Rows("rapt", {"eta": ANY_VALUE, "reconstruction": False}),
        more="RAPT gains {d} points by reconstruction on {task} ({at}; {ci}).",
        less="RAPT loses {d} points by reconstruction on {task} ({at}; {ci})."),
    # What defenses leave of what is read without them
    Contrast("twin", LEAKAGE, P3EFT, Rows("none"), LABELS, less=LEFT),
    Contrast("twin", LEAKAGE, Rows("randomised-response"), Rows("none"), LABELS, less=LEFT),
    Contrast("twin", LEAKAGE, Rows("dpnr", undefended=False), Rows("dpnr", undefended=True), INPUTS,
        less="DPNR's vectors at {at} leak {x} of the words that are read without noise on {task} ({settings}{span}).",
        differ=("epsilon", "dropout", "as_released")),
    Contrast("twin", LEAKAGE, Rows(INPUT_NOISE, undefended=False), Rows(INPUT_NOISE, undefended=True), ATTRIBUTES,
        less=LEFT, differ=("eta", "epsilon", "reversal")),
    Contrast("twin", LEAKAGE, Rows("offsite-tuning", {"emulator": ANY_VALUE}), Rows("offsite-tuning", {"emulator": None}),
        MODEL, differ=("steps",),
        less="Offsite-tuning at {at} leaks {x} of the model on {task}: the customer hardly needs the vendor "
        "({n} of {settings})."),
    Contrast("private-training", LEAKAGE, Rows(("dpsgd", "crt"), undefended=False), PLAIN, MEMBERS, less=LEFT),
    Contrast("private-training", LEAKAGE, Rows(("dpsgd", "crt"), undefended=False), PLAIN, SECRETS, less=LEFT),
    Contrast("private-training", UTILITY, DIRECT, Rows("dpsgd", {"epsilon": ANY_VALUE}), **USEFUL),
    # JFT and redaction
    Contrast("detector", LEAKAGE, Rows(("jft", "redacted"), {"canaries": "missed"}),
        Rows(("jft", "redacted"), {"canaries": "masked"}), SECRETS,
        more="{a} does not hide secrets that its detector misses on {task}: {x} leak, of those it finds {y} "
        "({n} of {pairs})."),
    Contrast("jft", UTILITY, DIRECT, Rows("redacted"), at=("detector",),
        **{word: sentence.replace("at {at}", "with the detector {at}") for word, sentence in USEFUL.items()}),
    Contrast("jft", UTILITY, _jft(phase1="light-noise"), _jft(phase1="direct"), differ=FIRST_PHASE,
        less="JFT is less useful with light noise than with redaction first on {task}: by {d} points "
        "({ci}; {n} of {pairs})."),
    Contrast("jft", LEAKAGE, _jft(phase1="light-noise", canaries="missed"), _jft(phase1="direct", canaries="missed"),
        SECRETS, differ=FIRST_PHASE,
        less="Light noise in JFT hides secrets that its detector misses on {task}: {x} leak, not {y}."),
    # What attackers may know
    _attacks("knowledge", Rows(("sap", "rapt"), {"eta": ANY_VALUE}), INPUTS, Reader(("eia-map",)),
        Reader(("eia-nn",)), more="Public text helps an attacker: {attack} " + ATTACKER),
    _attacks("knowledge", SAP, INPUTS, Reader(("eia-map",), params={"auxiliary": "reviews"}),
        Reader(("eia-nn",)), less="Public text of another kind misleads an attacker: {attack} " + ATTACKER),
    _attacks("knowledge", Rows(INPUT_NOISE, undefended=False), INPUTS, Reader(("eia-bayes",)),
        Reader(("eia-nn",)), more="Word frequencies help an attacker: {attack} " + ATTACKER,
        less="Word frequencies mislead an attacker: {attack} " + ATTACKER, margin=0.02),
    _attacks("knowledge", Rows("sap"), INPUTS, Reader(("bidirectional",)), Reader(("eia-nn",)),
        more="Gradients of the head help an attacker: {attack} " + ATTACKER),
    # Other attacks read all or what is sent before training, so that the precision could not show.
    Contrast("precision", LEAKAGE, replace(P3EFT, train={"precision": "bf16"}),
        replace(P3EFT, train={"precision": "float32"}), LABELS, differ=("precision",), reader=BY_AUTHORS, margin=FIVE,
        more="By the authors' own attacks, {a} leaks more labels in bf16 than in float32 on {task}: {x} against {y}.",
        less="By the authors' own attacks, {a} leaks fewer labels in bf16 than in float32 on {task}: {x} against {y}.",
        same="By the authors' own attacks, P³EFT leaks as many labels in bf16 as in float32 on {task}, within {margin} "
        "({pairs})."),
)
# fmt: on
TITLES = {
    "headlines": "What a budget buys",
    "halving": "What it costs to hide half, of what tuning gains",
    "both": "Hiding texts and labels at once",
    "labels": "Which defenses hide labels",
    "elsewhere": "What defenses leak that they are not made to hide",
    "text": "What language models leak",
    "identity": "Which text was sent",
    "authors": "What the authors' attacks miss",
    "trainable": "Training below the cut",
    "depth": "What depth hides",
    "variants": "SAP-CTI against SAP",
    "prompts": "RAPT against SAP",
    "servers": "Servers of P³EFT",
    "twin": "What defenses leave of what is read without them",
    "private-training": "Private training",
    "detector": "What detectors miss",
    "jft": "JFT, its first phase and redaction",
    "knowledge": "What an attacker gains by knowledge",
    "audits": "Audits of ε",
    "precision": "Numerical precision",
    "idle": "Where no attack works",
}
"""Titles of the rules, the most important first."""
CONDITIONS = (
    f"{LEAKAGE_WORDS} "
    "Costs and utilities are points, with 95 % intervals in brackets. Every difference is clear: the p-value of a paired "
    "test over seeds is below 5 % after Holm's correction for all pairs of its rule. Of several clear pairs, a sentence "
    "reports the one with most seeds, then most trials of tuning, then the least p, and how many are clear. With one seed "
    "the test is within the cell, and the sentence is left out where others have several seeds. The ε of JFT is for secrets that its detector finds, that "
    "of DP-SGD for whole examples. Most models are MiniLM or small language models. Larger ones "
    "(MPNet, SmolLM2, Gemma 3 270M) are named. Most cells have three seeds."
)
"""Conditions of all sentences, which precede them."""


def findings(table: ResultsTable) -> list[Finding]:
    """All findings from reproduced records, the most important first; those of one seed only where all are."""
    table = table.reproduced
    found = [*headlines(table), *halving(table), *audits(table), *idle(table)]
    found += [finding for rule in RULES for finding in rule.evaluate(table)]
    several = [finding for finding in found if finding.seeds > 1]
    order = list(TITLES)
    return sorted(several or found, key=lambda finding: order.index(finding.rule))
