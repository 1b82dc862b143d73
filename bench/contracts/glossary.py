"""Definitions of terms; pages and documents quote them."""

from __future__ import annotations

GLOSSARY = {
    "customer, vendor": "The customer owns texts and labels. The vendor, also called provider, owns the model or the "
    "servers.",
    "transcript": "All messages that cross from one party to the other. Attacks read it.",
    "channel": "A kind of message in the transcript, such as `tokens` or `logit-gradients`.",
    "round": "An epoch of training in the transcript. Messages that are sent once are in the first round.",
    "moment": "A short window of training that attacks read on its own. There are about 20.",
    "cut": "Number of blocks of the model that stay with the customer. 0 cuts after the word embeddings.",
    "cell, record": "A cell is one model, fine-tuned once under one defense with one seed, and then attacked. Its record "
    "is the file with the results.",
    "canary": "A sentence with a random secret that is planted in the training texts.",
    "setting": "A defense with its parameters on one task, model and cut, trained in one way, with all its seeds.",
    "utility": "How well the model does its task, measured as the customer would use it, with the defense in place, "
    "from 0 to 1.",
    "cost": "The utility lost against no protection, in points (one point is 0.01), paired by seed.",
    "equally tuned": "As many trainings were tried to tune this setting as to tune the undefended one.",
    "success": "The share of an attack's guesses that are right, or the AUC of its ranking; for exposure, bits. Higher "
    "leaks more.",
    "chance": "What guessing without any observation reaches.",
    "floor": "The success of the same attack on activations of the untrained model, which no defense can change.",
    "baseline": "Chance, or the floor where that is higher.",
    "ceiling": "The largest success there is: 1, or 19.93 bits of exposure.",
    "advantage": "(success − baseline) / (ceiling − baseline): 0 at the baseline, 1 where everything is recovered, "
    "below 0 for worse than the baseline.",
    "undefended twin": "The defense with its protection off.",
    "strongest attack": "The attack, with its parameters, channel and moment of training, whose advantage is largest. "
    "For each seed it is chosen on the other seeds.",
    "leakage": "The advantage of the strongest attack, divided by the advantage of the strongest attack on the "
    "undefended twin.",
    "certified": "The advantage on the undefended twin is clearly above 0.2.",
    "not certified": "No attack is shown to work even without the defense, so there is nothing to take a share of.",
    "certificate": "The lower end (95 %) of an attack's advantage on the undefended twin, on the mean over the seeds.",
    "leakage within 3 points": "The least leakage of a setting that still learns and costs at most 3 points on the mean.",
    "cost of halving the leakage": "The least cost of a measured setting that leaks at most 50 % and still learns; if there "
    "is none, of any that leaks so little.",
    "still learns": "Is clearly better than the untuned model and keeps at least a fifth of what tuning gains.",
    "EP": "Empirical privacy, 1 − success / ceiling. It belongs to one attack: another one may recover more.",
    "interval": "95 %. Over seeds Student's t; with one seed the interval within the cell, a bootstrap over whole "
    "examples.",
}
"""Definition of each term, in reading order."""

HEAD = """# What the words mean

Each word has one meaning: here, in the code, in the records and on the site. This page is written by
`python -c "from leakboard.bench.contracts.glossary import page; print(page(), end='')" > docs/glossary.md`.
"""


def page() -> str:
    """The glossary in Markdown, the content of `docs/glossary.md`."""
    lines = [f"**{word}**\n:   {meaning}\n" for word, meaning in GLOSSARY.items()]
    return "\n".join([HEAD, *lines])
