"""The rules: which rows stand against which, along what, by which metric, and in which words."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.answers import halving, headlines, idle
from leakboard.leaderboards.findings.audits import audits
from leakboard.leaderboards.findings.engine import AttackContrast, Contrast, Level, Reader, Tables
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.tables.pairing import GIVEN, Rows
from leakboard.leaderboards.tables.results import ResultsTable

INPUTS, LABELS, ATTRIBUTES = Goal.INVERSION, Goal.LABEL, Goal.ATTRIBUTE
SECRETS, MEMBERS, MODEL = Goal.MEMORISATION, Goal.MEMBERSHIP, Goal.MODEL

SPLIT = ("sap", "sap-cti", "rapt", "dpnr", "cape", "custext-plus", "santext-plus")
"""Defenses that put noise into what a customer sends."""
TUNED_ON_CUSTOMER = ("sap", "sap-cti")
AUTHORS_LABEL_ATTACKS = Reader(("spectral", "norm", "kmeans"), ("activations",))
"""The attacks that the authors of P³EFT evaluate, where they look."""
ACTIVATIONS = Reader(channels=("activations", "recomputed-activations"))
LANGUAGE = ("dialogues", "replies")

RULES: tuple[Contrast | AttackContrast | Level, ...] = (
    # Labels
    Level(
        "labels",
        Rows("p3eft", {"servers": "one"}, undefended=False, task=("sst2", "qnli", "mrpc")),
        LABELS,
        "P³EFT with one server does not hide labels on {tasks}: {attack} recovers all of them ({metric} {success}).",
        least=0.95,
    ),
    Level(
        "labels",
        Rows("dc", undefended=False),
        LABELS,
        "{defenses} does not hide labels from a server that sees gradients: attacks recover all of them on {tasks} "
        "({settings}).",
        least=0.95,
    ),
    Level(
        "labels",
        Rows("frozen"),
        LABELS,
        "A frozen encoder leaks {x} of labels on {tasks}: what it sends does not depend on them.",
        most=0.05,
    ),
    AttackContrast(
        "authors",
        Rows(("p3eft", "dc"), undefended=False),
        LABELS,
        Reader(),
        AUTHORS_LABEL_ATTACKS,
        more="Attacks of the authors underestimate what {a} leaks on {task}: {other} scores {y}, {attack} {x} (label AUC).",
    ),
    Contrast(
        "authors",
        Rows("p3eft", undefended=False),
        Rows("none"),
        "leakage",
        LABELS,
        less="By the authors' own attacks on activations, P³EFT leaks {x} of the labels on {task} at {at} ({n} of {settings} clear).",
        reader=AUTHORS_LABEL_ATTACKS,
    ),
    Contrast(
        "servers",
        Rows("p3eft", {"servers": "per-adapter"}, undefended=False),
        Rows("p3eft", {"servers": "one"}, undefended=False),
        "leakage",
        LABELS,
        differ=("alternating",),
        less="P³EFT leaks fewer labels to a server for each adapter than to one server on {task}: {x} instead of {y}.",
        same="P³EFT leaks as many labels to a server for each adapter as to one server on {task} ({pairs}).",
        margin=0.05,
    ),
    Contrast(
        "servers",
        Rows("p3eft", {"servers": ("per-call", "per-vector", "separate")}, undefended=False),
        Rows("p3eft", {"servers": "one"}, undefended=False),
        "leakage",
        LABELS,
        less="P³EFT leaks fewer labels to a server that sees one call than to one that sees all on {task}: {x} instead of {y}.",
        same="P³EFT leaks as many labels to a server that sees one call as to one that sees all on {task} ({pairs}).",
        margin=0.05,
    ),
    Contrast(
        "servers",
        Rows("p3eft", {"adapters": 4}, undefended=False),
        Rows("p3eft", {"adapters": 2}, undefended=False),
        "leakage",
        LABELS,
        less="P³EFT leaks fewer labels with four adapters than with two on {task}: {x} instead of {y}.",
        more="P³EFT leaks more labels with four adapters than with two on {task}: {x} instead of {y}.",
        same="P³EFT leaks as many labels with four adapters as with two on {task} ({pairs}).",
        margin=0.05,
    ),
    # Inputs
    Level(
        "depth",
        Rows("sap", {"eta": None}, cut=(3, 5)),
        INPUTS,
        "Depth alone does not hide inputs: behind half or more of MiniLM's blocks, {attack} still reads {success_percent} of the tokens ({tasks}).",
        least=0.95,
    ),
    Contrast(
        "depth",
        Rows("sap", {"eta": GIVEN}, cut=5),
        Rows("sap", {"eta": GIVEN, "bottom": "frozen"}, cut=0),
        "leakage",
        INPUTS,
        more="Noise hides less behind blocks than at the embeddings: at {at}, {x} of the inputs leak after five blocks, {y} before the first ({task}).",
    ),
    Contrast(
        "trainable",
        Rows("sap", {"bottom": "trainable", "eta": GIVEN}),
        Rows("sap", {"bottom": "frozen", "eta": GIVEN}),
        "leakage",
        INPUTS,
        more="Training SAP's bottom gives inputs away: at {at}, {x} leak on {task}, with a frozen bottom {y} ({n} of {of} pairs).",
        less="Training SAP's bottom hides inputs: at {at}, {x} leak on {task}, with a frozen bottom {y}.",
    ),
    Contrast(
        "variants",
        Rows("sap-cti"),
        Rows("sap"),
        "utility",
        more="SAP-CTI is better than SAP on {task}: by {d} points at {at} and share = {share} ({ci}; {n} of {of} pairs).",
        less="SAP-CTI is worse than SAP on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
    ),
    Contrast(
        "variants",
        Rows("sap-cti"),
        Rows("sap"),
        "leakage",
        INPUTS,
        more="SAP-CTI leaks more inputs than SAP on {task}: {x} against {y} at {at} ({n} of {of} pairs).",
        less="SAP-CTI leaks fewer inputs than SAP on {task}: {x} against {y} at {at} ({n} of {of} pairs).",
        same="SAP-CTI leaks as many inputs as SAP at the same η on {task}: none of {pairs} differs by 5 points.",
        margin=0.05,
    ),
    Contrast(
        "prompts",
        Rows("rapt", {"eta": GIVEN}),
        Rows("sap", {"bottom": "frozen", "eta": GIVEN}, cut=0),
        "utility",
        more="RAPT is more useful than SAP on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
        less="RAPT is less useful than SAP on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
    ),
    Contrast(
        "prompts",
        Rows("rapt", {"eta": GIVEN}),
        Rows("sap", {"bottom": "frozen", "eta": GIVEN}, cut=0),
        "leakage",
        INPUTS,
        more="RAPT leaks more inputs than SAP on {task}: {x} against {y} at {at}.",
        less="RAPT leaks fewer inputs than SAP on {task}: {x} against {y} at {at}.",
        same="RAPT leaks as many inputs as SAP at the same η on {task}: none of {pairs} differs by 5 points.",
        margin=0.05,
    ),
    Contrast(
        "prompts",
        Rows("rapt", {"reconstruction": True, "eta": GIVEN}),
        Rows("rapt", {"reconstruction": False, "eta": GIVEN}),
        "utility",
        more="RAPT gains from reconstruction on {task}: {d} points at {at} ({ci}).",
        less="RAPT loses by reconstruction on {task}: {d} points at {at} ({ci}).",
    ),
    Contrast(
        "released",
        Rows(("dpnr", "cape"), {"as_released": True, "epsilon": GIVEN}),
        Rows(("dpnr", "cape"), {"as_released": False, "epsilon": GIVEN}),
        "leakage",
        INPUTS,
        more="The released code of {a} hides less than the mechanism of its paper: {x} of inputs leak instead of {y} at {at} on {task}.",
    ),
    Contrast(
        "released",
        Rows(("dpnr", "cape"), {"as_released": True, "epsilon": GIVEN}),
        Rows(("dpnr", "cape"), {"as_released": False, "epsilon": GIVEN}),
        "utility",
        less="The released code of {a} is less useful than the mechanism of its paper: by {d} points at {at} on {task} ({ci}).",
    ),
    Contrast(
        "knob",
        Rows("custext-plus", {"epsilon": 3}),
        Rows("custext-plus", {"epsilon": 1}),
        "leakage",
        INPUTS,
        same="CusText+ hides as much at ε = 3 as at ε = 1 on {task}: {x} and {y} of the inputs leak.",
        margin=0.05,
    ),
    Contrast(
        "twin",
        Rows(("dpnr", "cape", "sap"), undefended=False),
        Rows(("dpnr", "cape", "sap"), undefended=True),
        "leakage",
        ATTRIBUTES,
        differ=("eta", "epsilon", "reversal"),
        less="{a} at {at} leaks {x} of the attributes that are read without it on {task} ({n} of {settings} clear).",
    ),
    Contrast(
        "twin",
        Rows("dpnr", {"epsilon": GIVEN, "as_released": False}),
        Rows("dpnr", {"epsilon": None, "as_released": False}),
        "leakage",
        INPUTS,
        differ=("dropout",),
        less="DPNR at {at} leaks {x} of the inputs that are read without it on {task} ({n} of {settings} clear).",
    ),
    Contrast(
        "twin",
        Rows("offsite-tuning", {"emulator": GIVEN}),
        Rows("offsite-tuning", {"emulator": None}),
        "leakage",
        MODEL,
        differ=("steps",),
        less="Offsite-tuning at {at} leaks {x} of the model's advantage on {task}: the customer hardly needs the vendor ({n} of {settings} clear).",
    ),
    Contrast(
        "twin",
        Rows("p3eft", undefended=False),
        Rows("none"),
        "leakage",
        LABELS,
        less="P³EFT at {at} leaks {x} of the labels that are read without it on {task} ({n} of {settings} clear).",
    ),
    Contrast(
        "twin",
        Rows("randomised-response"),
        Rows("none"),
        "leakage",
        LABELS,
        less="Randomised response at {at} leaks {x} of the labels that are read without it on {task}.",
    ),
    AttackContrast(
        "public-text",
        Rows(("sap", "rapt"), {"eta": GIVEN}),
        INPUTS,
        Reader(("eia-map",)),
        Reader(("eia-nn",)),
        more="Public text helps an attacker: {attack} reads {x} of the tokens on {task}, the nearest neighbour {y} ({a}, {at}; {n} of {of} settings).",
        less="Public text misleads an attacker: {attack} reads {x} of the tokens on {task}, the nearest neighbour {y} ({a}, {at}).",
    ),
    AttackContrast(
        "public-text",
        Rows("sap", {"eta": GIVEN}),
        INPUTS,
        Reader(("eia-map",), params={"auxiliary": "reviews"}),
        Reader(("eia-nn",)),
        less="Public text of another kind misleads an attacker: {attack} on reviews reads {x} of the tokens on {task}, the nearest neighbour {y}.",
    ),
    AttackContrast(
        "posterior",
        Rows(SPLIT, undefended=False),
        INPUTS,
        Reader(("eia-bayes",)),
        Reader(("eia-nn",)),
        more="Word frequencies help an attacker: {attack} reads {x} of the tokens on {task}, {other} {y} ({a}, {at}; {n} of {of} settings).",
        margin=0.02,
        less="Word frequencies mislead an attacker on {task}: {attack} reads {x} of the tokens, {other} {y} ({a}, {at}; {n} of {of} settings).",
    ),
    AttackContrast(
        "posterior",
        Rows("sap"),
        INPUTS,
        Reader(("bidirectional",)),
        Reader(("eia-nn",)),
        more="Gradients of a private head add to what embeddings tell: {attack} reads {x} of the tokens on {task}, {other} {y} ({at}).",
    ),
    # Language models
    Level(
        "text",
        Rows("sap", task=LANGUAGE),
        LABELS,
        "Noise at the input does not hide the text of a language model: {attack} reads all of it at each of {settings} ({tasks}).",
        least=0.95,
    ),
    Contrast(
        "detector",
        Rows(("jft", "redacted"), {"canaries": "missed"}),
        Rows(("jft", "redacted"), {"canaries": "masked"}),
        "leakage",
        SECRETS,
        more="{a} does not hide secrets that its detector misses: {x} leak on {task}, of those it finds {y} ({n} of {of} pairs).",
    ),
    Contrast(
        "twice",
        Rows("jft", {"phase1": "direct"}),
        Rows("redacted"),
        "utility",
        more="JFT is more useful than redaction alone on {task}: by {d} points with {at} ({ci}; {n} of {of} pairs).",
        less="JFT is less useful than redaction alone on {task}: by {d} points with {at} ({ci}; {n} of {of} pairs).",
        at="detector",
    ),
    Contrast(
        "light-noise",
        Rows("jft", {"phase1": "light-noise"}),
        Rows("jft", {"phase1": "direct"}),
        "utility",
        differ=("miss_rate", "light", "checked"),
        less="Light noise in JFT costs {d} points more than redaction in its first phase on {task} ({ci}; {n} of {of} pairs).",
    ),
    Contrast(
        "light-noise",
        Rows("jft", {"phase1": "light-noise", "canaries": "missed"}),
        Rows("jft", {"phase1": "direct", "canaries": "missed"}),
        "leakage",
        SECRETS,
        differ=("miss_rate", "light", "checked"),
        less="Light noise in JFT hides secrets that the detector misses: {x} leak on {task} instead of {y}.",
    ),
    Contrast(
        "light-noise",
        Rows("jft", {"phase1": "manual"}),
        Rows("jft", {"phase1": "direct"}),
        "utility",
        differ=("miss_rate", "light", "checked"),
        less="A manual check of JFT's first phase costs {d} points on {task} ({ci}).",
    ),
    Contrast(
        "private-training",
        Rows("jft", {"phase1": "direct", "epsilon": GIVEN}),
        Rows("dpsgd", {"epsilon": GIVEN}),
        "utility",
        more="JFT is more useful than DP-SGD at the same ε on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
        less="JFT is less useful than DP-SGD at the same ε on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
    ),
    Contrast(
        "private-training",
        Rows("crt", {"epsilon": GIVEN}),
        Rows("dpsgd", {"epsilon": GIVEN}),
        "utility",
        more="CRT is more useful than DP-SGD at the same ε on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
        less="CRT is less useful than DP-SGD at the same ε on {task}: by {d} points at {at} ({ci}; {n} of {of} pairs).",
    ),
    Contrast(
        "private-training",
        Rows(("dpsgd", "crt"), undefended=False),
        Rows(("none", "dpsgd"), undefended=True),
        "leakage",
        MEMBERS,
        less="{a} at {at} leaks {x} of the members that are read without it on {task} ({n} of {settings} clear).",
    ),
    Contrast(
        "private-training",
        Rows(("dpsgd", "crt"), undefended=False),
        Rows(("none", "dpsgd"), undefended=True),
        "leakage",
        SECRETS,
        less="{a} at {at} leaks {x} of the secrets that are read without it on {task} ({n} of {settings} clear).",
    ),
    # What else is given away
    Level(
        "elsewhere",
        Rows(SPLIT, undefended=False),
        LABELS,
        "{defenses} also give away labels: even the best of {settings} leaks {x}.",
        least=0.95,
        own_goal=False,
    ),
    Level(
        "elsewhere",
        Rows(("p3eft", "dc", "frozen", "randomised-response", "offsite-tuning"), undefended=False),
        INPUTS,
        "{defenses} also give away inputs: even the best of {settings} leaks {x}.",
        least=0.95,
        own_goal=False,
    ),
    # Precision
    Contrast(
        "precision",
        Rows(("none", "p3eft", "sap"), train={"precision": "bf16"}),
        Rows(("none", "p3eft", "sap"), train={"precision": "float32"}),
        "leakage",
        more="bf16 leaks more than float32 on {task}: {x} against {y} ({a}).",
        less="bf16 leaks less than float32 on {task}: {x} against {y} ({a}).",
        same="Training in bf16 leaks as much as in float32 on {task}: none of {pairs} differs by 5 points.",
        differ=("precision",),
        margin=0.05,
    ),
)

TITLES = {
    "headlines": "What a budget buys",
    "halving": "What it costs to hide half",
    "labels": "Which defenses hide labels",
    "elsewhere": "What defenses leak that they are not made to hide",
    "text": "What language models leak",
    "authors": "What the authors' attacks miss",
    "servers": "Servers and adapters of P³EFT",
    "trainable": "Training below the cut",
    "depth": "What depth hides",
    "variants": "SAP-CTI against SAP",
    "prompts": "RAPT against SAP",
    "released": "Released code against papers",
    "twin": "What defenses leave of what is read without them",
    "knob": "Knobs that change nothing",
    "public-text": "What public text is worth to an attacker",
    "posterior": "What other knowledge is worth to an attacker",
    "private-training": "Private training",
    "detector": "What detectors of redaction miss",
    "twice": "JFT against redaction",
    "light-noise": "The first phase of JFT",
    "audits": "Audits of ε",
    "precision": "Numerical precision",
    "idle": "Where no attack works",
}
"""The rules by name, the most important first, with what each is about."""


def findings(table: ResultsTable) -> list[Finding]:
    """All that the records show, the most important first."""
    tables = Tables(table)
    found = [*headlines(table), *halving(table), *audits(table), *idle(table)]
    found += [one for rule in RULES for one in rule.evaluate(tables)]
    order = list(TITLES)
    return sorted(found, key=lambda one: order.index(one.rule))


def shared_conditions(found: Sequence[Finding]) -> str:
    """What all sentences share, to be said once above them."""
    return (
        "Leakage is the share of what the strongest attack reads without a defense that it still reads with it. "
        "Costs are points of utility lost against no protection. A difference is clear where a paired test over seeds "
        "is below 5 % after Holm's correction for all pairs of its rule. Models are small (MiniLM, and language "
        "models of at most 15 million parameters unless another is named)."
    )
