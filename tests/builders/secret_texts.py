"""Texts with secrets in them, pipelines that find them, and files with marked ones."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

SENTENCE = (
    "Alice Smith sent Bob 5 euros on Monday , but Acme in Paris said she wants the car quickly"
)


ANNOTATED = {  # word: entity, dependency, part of speech
    "Alice": ("B-PERSON", "compound", "PROPN"),
    "Smith": ("I-PERSON", "nsubj", "PROPN"),
    "sent": ("O", "ROOT", "VERB"),
    "Bob": ("B-PERSON", "dative", "PROPN"),
    "5": ("B-MONEY", "nummod", "NUM"),
    "euros": ("I-MONEY", "dobj", "NOUN"),
    "Monday": ("B-DATE", "pobj", "PROPN"),
    "Acme": ("B-ORG", "nsubj", "PROPN"),
    "Paris": ("B-GPE", "pobj", "PROPN"),
    "said": ("O", "conj", "VERB"),
    "she": ("O", "nsubj", "PRON"),
    "wants": ("O", "ccomp", "VERB"),
    "car": ("O", "dobj", "NOUN"),
    "is": ("O", "ROOT", "AUX"),
    "his": ("O", "poss", "PRON"),
    "Ford": ("O", "compound", "PROPN"),
}


# Each rule of its own: a root that is no verb, a pronoun and a proper noun that are no subject or object.
RULES = "now is ready his old Ford model"


def saved_pipelines(folder: Path) -> dict[str, str]:
    """Pipelines that annotate by a word list: all of it, in part, nothing, and other kinds."""
    import spacy
    from spacy.language import Language
    from spacy.tokens import Doc

    @Language.factory("by_list", default_config={"parts": ["ents", "deps", "pos"]})
    def by_list(nlp, name, parts):
        def annotate(doc):
            words = [token.text for token in doc]
            if not words:
                return doc
            found = [ANNOTATED.get(word, ("O", "dep", "X")) for word in words]
            columns = dict(zip(("ents", "deps", "pos"), zip(*found, strict=True), strict=True))
            more = {part: list(columns[part]) for part in parts}
            heads = {"heads": [0] * len(words)} if "deps" in parts else {}
            return Doc(nlp.vocab, words, [bool(t.whitespace_) for t in doc], **more, **heads)

        return annotate

    def saved(name, *parts, called="by_list"):
        nlp = spacy.blank("en")
        if parts:
            nlp.add_pipe("by_list", called, config={"parts": list(parts)})
        nlp.to_disk(folder / name)
        return str(folder / name)

    other = spacy.blank("en")
    ner = other.add_pipe("ner")
    ner.add_label("PER")
    other.initialize()
    other.to_disk(folder / "other")
    return {
        "whole": saved("whole", "ents", "deps", "pos"),
        "named": saved("named", "ents", "deps", "pos", called="ner"),
        "entities": saved("entities", "ents"),
        "blank": saved("blank"),
        "other": str(folder / "other"),
    }


def pieces(text, spans):
    return [(text[s.start : s.end], s.kind) for s in spans]


OWN = [
    ("mail ann@x.org now", '[{"start": 5, "end": 14, "kind": "EMAIL"}]'),
    ("call Bo on 555-867-5309", '[{"start": 11, "end": 23, "kind": "phone"}, {"start": 5, "end": 7, "kind": "name"}]'),
    ("nothing here", ""),
]  # fmt: skip


def own_file(folder, suffix, rows=OWN, columns=("text", "spans")):
    path, frame = folder / f"own{suffix}", pd.DataFrame(rows, columns=columns)
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        path.write_text("\n".join("\t".join(row) for row in [columns, *rows]) + "\n")
    return path
