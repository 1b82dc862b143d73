"""The datasets known by name: their columns, labels, private attributes and place on the hub."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator

from leakboard.bench.contracts import did_you_mean
from leakboard.bench.tasks.assemble import Attribute, Layout


@dataclass(frozen=True)
class Hub:
    """Location of a dataset on the Hugging Face hub, and its mapping to files of a folder."""

    repo: str
    splits: dict[str, str]
    """Our split → the hub's."""
    columns: dict[str, str]
    """Our column → the hub's; a dot denotes a field of a nested record."""
    config: str | None = None
    revision: str | None = None
    file: str | None = None
    """The file to use from a repository with several files."""
    labels: tuple[str, ...] = ()
    """Names of the hub's class numbers; empty if the hub has names."""
    split_by: str = "text"
    tenths: dict[int, str] = field(default_factory=dict)
    """Tenths of the hub's train split, by the hash of `split_by`, that become other splits."""


@dataclass(frozen=True)
class Entry:
    """A dataset known by name."""

    name: str
    description: str
    layout: Layout
    hub: Hub | None = None
    """None if the hub has no faithful copy, so a folder is needed."""
    files: dict[str, str] = field(default_factory=dict)
    """Our split → the folder's file, if the names differ."""
    origin: str = ""
    """Where its files can be obtained, if not on the hub."""
    shares: str = ""
    """The task whose folder holds its files, if it is another one."""

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return self.shares or self.name


@dataclass(frozen=True)
class Listing:
    """A line of `leakboard list`."""

    name: str
    description: str
    attributes: tuple[str, ...]
    source: str


BINARY = ("0", "1")
BLOG_INDUSTRIES = (
    "Arts",
    "Communications-Media",
    "Education",
    "Engineering",
    "Government",
    "Internet",
    "Law",
    "Non-Profit",
    "Student",
    "Technology",
)


def _gender(*values: str) -> Attribute:
    return Attribute("gender", "gender", values)


ENTRIES = (
    Entry(
        "sst2",
        "Sentiment of phrases from film reviews: 0 negative, 1 positive (GLUE)",
        Layout(labels=BINARY),
        # The hub's test split has no labels.
        Hub(
            "nyu-mll/glue",
            {"train": "train", "dev": "validation"},
            {"text": "sentence", "label": "label"},
            config="sst2",
            labels=BINARY,
        ),
    ),
    Entry(
        "mrpc",
        "Paraphrase detection in pairs of news sentences: 1 paraphrase (MSR corpus)",
        Layout(text2="text2", labels=BINARY),
        # The same 4076 pairs in train and dev together, but GLUE's own choice of dev.
        Hub(
            "nyu-mll/glue",
            {"train": "train", "dev": "validation", "test": "test"},
            {"text": "sentence1", "text2": "sentence2", "label": "label"},
            config="mrpc",
            labels=BINARY,
        ),
    ),
    Entry(
        "qqp",
        "Duplicate detection in pairs of Quora questions: 1 duplicate (GLUE; dev: GLUE's dev)",
        Layout(text2="text2", labels=BINARY),
        Hub(
            "nyu-mll/glue",
            {"train": "train", "dev": "validation"},
            {"text": "question1", "text2": "question2", "label": "label"},
            config="qqp",
            labels=BINARY,
        ),
    ),
    Entry(
        "financial_phrasebank",
        "Sentiment of sentences from financial news on which all annotators agree",
        Layout(labels=("negative", "neutral", "positive")),
        Hub(
            "takala/financial_phrasebank",
            {"train": "train"},
            {"text": "sentence", "label": "label"},
            config="sentences_allagree",
            # The main branch holds a loading script, which is never run.
            revision="refs/convert/parquet",
            labels=("negative", "neutral", "positive"),
            tenths={0: "test", 1: "test", 2: "dev"},
        ),
    ),
    Entry(
        "blog_topic",
        "The blogger's industry, 10 classes; splits share no author",
        Layout(
            labels=BLOG_INDUSTRIES,
            attributes=(
                _gender("female", "male"),
                Attribute("age_group", "age_group", ("10s", "20s", "30s")),
            ),
        ),
    ),
    Entry(
        "blog_gender_age",
        "The blogger's age group, 10s or 30s, balanced with gender; splits share no author",
        Layout(labels=("10s", "30s"), attributes=(_gender("female", "male"),)),
    ),
    # Of these authors the age is read from what they write, and gender hardly is: the private attribute of
    # the task above is one of which an attack has little to show.
    Entry(
        "blog_gender",
        "The blogger's gender, balanced with the private age group, 10s or 30s (in the files of blog_gender_age)",
        Layout(
            label="gender",
            labels=("female", "male"),
            attributes=(Attribute("age_group", "label", ("10s", "30s")),),
        ),
        shares="blog_gender_age",
    ),
    Entry(
        "trustpilot",
        "The reviewer's age class, 4 classes, from customer reviews",
        Layout(labels=("15-24", "25-54", "55-64", "65+"), attributes=(_gender("F", "M"),)),
    ),
    Entry(
        "synthpai",
        "The income level of synthetic forum authors, 4 classes; splits share no author",
        Layout(
            labels=("low", "middle", "high", "very high"),
            attributes=(
                _gender("female", "male"),
                Attribute("age", "age", ("under-30", "30-44", "45+"), edges=(30, 45)),
                Attribute(
                    "relationship_status",
                    "relationship_status",
                    ("single", "in a relationship", "engaged", "married", "divorced", "widowed"),
                    spellings={"in relationship": "in a relationship"},
                ),
            ),
            author="author_id",
        ),
        Hub(
            "RobinSta/SynthPAI",
            {"train": "train"},
            {
                "text": "text",
                "label": "profile.income_level",
                "gender": "profile.sex",
                "age": "profile.age",
                "relationship_status": "profile.relationship_status",
                "author_id": "author",
            },
            file="synthpai.jsonl",
            split_by="author_id",
            tenths={0: "test", 1: "test", 2: "test", 3: "dev"},
        ),
    ),
    Entry(
        "qnli",
        "Pairs of a question and a sentence: does the sentence answer it? (GLUE; dev: a tenth of train; test: GLUE's dev)",
        Layout(text2="text2", labels=("entailment", "not_entailment")),
        Hub(
            "nyu-mll/glue",
            {"train": "train", "test": "validation"},
            {"text": "question", "text2": "sentence", "label": "label"},
            config="qnli",
            labels=("entailment", "not_entailment"),
            tenths={0: "dev"},
        ),
    ),
    Entry(
        "mnli",
        "Natural language inference: does a premise entail a hypothesis? 3 classes (dev: a tenth of train; test: matched)",
        Layout(text2="text2", labels=("entailment", "neutral", "contradiction")),
        Hub(
            "nyu-mll/glue",
            {"train": "train", "test": "validation_matched"},
            {"text": "premise", "text2": "hypothesis", "label": "label"},
            config="mnli",
            labels=("entailment", "neutral", "contradiction"),
            tenths={0: "dev"},
        ),
    ),
    Entry(
        "uci_sentiment",
        "Sentiment of sentences from Amazon, IMDb and Yelp: 0 negative, 1 positive",
        Layout(labels=BINARY),
    ),
    # Fine-tuning takes the small validation part, and the test part is looked at: the large one has
    # no copy in a folder, and one name must mean the same texts everywhere.
    Entry(
        "wikitext2",
        "Language modelling of Wikipedia, one text per line (train: WikiText-2's validation; dev: its test)",
        Layout(label=None),
        # The raw configuration has other texts: words where this one has <unk>.
        Hub(
            "Salesforce/wikitext",
            {"train": "validation", "dev": "test"},
            {"text": "text"},
            config="wikitext-2-v1",
        ),
        files={"train": "dev", "dev": "test"},
    ),
    # What the hub has of it was rewritten, or needs code of its own to load.
    Entry(
        "abcd",
        "Language modelling of customer-service dialogues, played by people with assigned roles; secrets are marked",
        Layout(label=None),
        origin="https://github.com/asappresearch/abcd/raw/master/data/abcd_v1.1.json.gz",
    ),
)

CATALOGUE = {entry.name: entry for entry in ENTRIES}
GENERATED = {
    "reviews": Listing(
        "reviews",
        "Sentiment of reviews generated by a grammar; needs no download",
        ("gender", "age_band"),
        "generated",
    ),
    "dialogues": Listing(
        "dialogues",
        "Language modelling of customer-service dialogues generated by a grammar, with marked names, "
        "addresses and numbers; needs no download",
        (),
        "generated",
    ),
    "replies": Listing(
        "replies",
        "Instruction tuning on pairs from `dialogues`: a customer's message, and the agent's answer, which is learnt; "
        "needs no download",
        (),
        "generated",
    ),
}


def listing() -> list[Listing]:
    """Every task known by name, generated ones first."""
    return [*GENERATED.values(), *(_listing(entry) for entry in ENTRIES)]


def known_task(name: str) -> str:
    """Return the name of a known task.

    Raises:
        ValueError: the name is unknown; the message suggests a similar one.
    """
    names = [task.name for task in listing()]
    if name not in names:
        raise ValueError(f"unknown task '{name}'. {did_you_mean(name, names)}")
    return name


TASK_ITSELF = "own"
"""In place of a task name: the public text of the same task."""
PublicText = Annotated[
    str, AfterValidator(lambda name: name if name == TASK_ITSELF else known_task(name))
]
"""The task whose split `auxiliary` an attack uses as public text."""


def _listing(entry: Entry) -> Listing:
    source = "folder" if entry.hub is None else f"folder or hub: {entry.hub.repo}"
    attributes = tuple(attribute.name for attribute in entry.layout.attributes)
    return Listing(entry.name, entry.description, attributes, source)
