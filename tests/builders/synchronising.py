"""What waits for the device in a step of training of which nothing is recorded, by file and operation.

`item` is a number that the program asks for, `cpu` a copy to the CPU, and `mask` a shape that depends on values
(indexing by a mask, bincount). Who adds one adds it here; who removes one takes it out.
"""

from __future__ import annotations

NORM = {"bench/exchange/training.py item": 1}
"""Of the gradients, which must be finite before the optimiser's step."""
BERT, GPT2 = (
    {"bench/backbones/families/bert.py item": 1},
    {"bench/backbones/families/gpt2.py item": 2},
)
"""Transformers asks whether there is any padding."""


def loss(file: str) -> dict[str, int]:
    """The loss, which every step returns."""
    return {f"{file} item": 1}


API, SPLIT = loss("bench/exchange/api.py"), loss("bench/exchange/session.py")
RELEASED, PRIVATE = (
    loss("bench/exchange/model_release.py"),
    loss("bench/defending/private_training.py"),
)
INPUT_NOISE = NORM | SPLIT | BERT
CLASSES, LANGUAGE = "classification", "language modelling"
PER_STEP: dict[tuple[str, str], dict[str, int]] = {
    ("blackout", CLASSES): {},
    ("blackout", LANGUAGE): {},
    # Each of its two adversaries asks whether it knows a value.
    ("cape", CLASSES): NORM | SPLIT | {"defenses/cape.py item": 2},
    ("crt", CLASSES): NORM | PRIVATE | BERT,
    ("crt", LANGUAGE): NORM | PRIVATE | GPT2,
    ("custext-plus", CLASSES): INPUT_NOISE,
    # The classes in a batch are counted.
    ("dc", CLASSES): NORM | API | BERT | {"bench/exchange/session.py mask": 1},
    ("dpnr", CLASSES): NORM | SPLIT,
    ("dpsgd", CLASSES): NORM | PRIVATE | BERT,
    ("dpsgd", LANGUAGE): NORM | PRIVATE | GPT2,
    ("frozen", CLASSES): NORM | loss("defenses/frozen.py"),
    ("frozen", LANGUAGE): NORM | loss("defenses/frozen.py"),
    ("jft", CLASSES): NORM | RELEASED | BERT,
    ("jft", LANGUAGE): NORM | RELEASED | GPT2,
    ("none", CLASSES): NORM | API | BERT,
    ("none", LANGUAGE): NORM | RELEASED | GPT2,
    ("offsite-tuning", CLASSES): NORM | RELEASED | BERT,
    # scikit-learn fits the probe of each of two adapters on the CPU; items are the loss and the scale of the noise.
    ("p3eft", CLASSES): NORM
    | {"defenses/p3eft.py cpu": 4, "defenses/p3eft.py item": 2}
    | {"bench/backbones/families/bert.py item": 2},
    ("p3eft", LANGUAGE): NORM
    | {"defenses/p3eft.py item": 2}
    | {"bench/backbones/families/gpt2.py item": 4},
    ("randomised-response", CLASSES): NORM | API | BERT,
    ("rapt", CLASSES): NORM | loss("defenses/rapt.py") | BERT,
    ("redacted", CLASSES): NORM | RELEASED | BERT,
    ("redacted", LANGUAGE): NORM | RELEASED | GPT2,
    ("santext-plus", CLASSES): INPUT_NOISE,
    ("sap", CLASSES): INPUT_NOISE,
    ("sap", LANGUAGE): NORM | loss("bench/exchange/language.py") | GPT2,
    ("sap-cti", CLASSES): INPUT_NOISE,
    ("stained-glass", CLASSES): INPUT_NOISE,
    ("untuned", CLASSES): {},
    ("untuned", LANGUAGE): {},
}
