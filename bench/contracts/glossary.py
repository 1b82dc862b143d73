"""What the words of results mean, once: pages show these sentences, documents quote them."""

from __future__ import annotations

GLOSSARY = {
    "utility": "How well the model does its task, measured as the customer would use it, with the defense in place, "
    "from 0 to 1.",
    "cost": "The points of utility that a setting loses against no protection, seed by seed; one point is 0.01.",
    "success": "The share of an attack's guesses that are right, or the AUC of its ranking; for exposure, bits. Higher "
    "leaks more.",
    "chance": "What guessing without any observation reaches.",
    "floor": "The success of the same attack on activations of the untrained model, which no defense can change.",
    "level": "Chance, or the floor where that is higher.",
    "ceiling": "The largest success there is: 1, or 19.93 bits of exposure.",
    "EP": "Empirical privacy, 1 − success / ceiling. It belongs to one attack: another one may find more.",
    "advantage": "(success − chance) / (ceiling − chance): 0 at chance, 1 where everything is found, below 0 for worse "
    "than guessing.",
    "above": "(success − level) / (ceiling − level): the advantage over the level, what training leaked.",
    "privacy": "EP divided by the EP that the level leaves, from 0 (everything is found) to 1 (no more than at the "
    "level): the share of the privacy that is kept. It can be compared between goals.",
    "leak": "1 − privacy: the share of the privacy that is lost.",
    "strongest": "The attack furthest above the level, on the mean over the seeds on which it ran, of those that read "
    "something and are certified or find something; where there is none, of all that read something.",
    "paper's": "The attack by which the authors of a defense measure it; of several the strongest.",
    "certificate": "How well the attack works on the undefended twin, which is the defense with its protection off: "
    "the lower end of how far it comes above the level there. Below 0.2 there is none, and the attack's failure "
    "says nothing.",
    "interval": "95 %. Over seeds Student's t, cut off at what is possible; with one seed the interval inside the cell, "
    "a bootstrap over whole examples.",
    "protects": "By a certified attack: clearly less is found than without protection, nothing clearly above the level, "
    "and at least 0.8 of the privacy is kept.",
    "partly": "By a certified attack: clearly less is found than without protection, and with the whole interval at "
    "least 0.2 of the privacy is kept.",
    "leaks": "Something is clearly found, and it is not shown that much is kept. A success needs no certificate.",
    "not shown": "No attack is certified there, or what was measured says neither: no number, no rank and no colour "
    "stands there. Where an attack without a certificate finds something, at most so much (≤) is kept.",
    "not applicable": "Nothing that the defense sends can be read by such an attack.",
}
"""Each word with its one definition, in an order in which they can be read."""

HEAD = """# What the words mean

Each word has one meaning: here, in the code, in the records and on the site. This page is written by
`python -c "from leakboard.bench.contracts.glossary import page; print(page(), end='')" > docs/glossary.md`.
"""


def page() -> str:
    """The glossary in Markdown, as `docs/glossary.md` has it."""
    lines = [f"**{word}**\n:   {meaning}\n" for word, meaning in GLOSSARY.items()]
    return "\n".join([HEAD, *lines])
