"""A task by its name: generated, from a folder, from the hub."""

from __future__ import annotations

import pytest
from folders import DATA, failure, needs_data, rows_of, write

from leakboard.bench.tasks.catalogue import CATALOGUE, GENERATED, listing
from leakboard.bench.tasks.loading import GENERATORS, load_task
from leakboard.bench.tasks.readers import read_table
from leakboard.bench.tasks.reviews import reviews

LABELLED = [name for name, entry in CATALOGUE.items() if entry.layout.label]


def test_generated_task_wins_over_a_folder_of_its_name(tmp_path):
    write(tmp_path / "reviews", "train", rows_of(40))
    assert load_task("reviews", tmp_path) is reviews()


def test_unknown_name_suggests_the_nearest_one():
    assert "Did you mean 'mrpc'?" in failure(None, "mprc")


def test_listing_names_each_task_once_with_the_attributes_that_it_has():
    listed = {line.name: line for line in listing()}
    assert list(listed) == ["reviews", "dialogues", "replies", *CATALOGUE]
    assert set(GENERATED) == set(GENERATORS)
    assert listed["reviews"].attributes == tuple(reviews().attributes)
    assert listed["synthpai"].attributes == ("gender", "age", "relationship_status")
    assert "hub" not in listed["trustpilot"].source
    assert all(line.description for line in listed.values())


def test_folder_gives_rows_in_order_with_indices_of_the_catalogue_labels(sst2):
    task = load_task("sst2", sst2)
    assert task.labels == ("0", "1")
    assert set(task.splits) == {"train", "dev", "auxiliary"}
    assert task.split("dev").texts == tuple(f"sentence number {i}" for i in range(100, 110))
    assert task.split("dev").labels.tolist() == [0, 1] * 5


def test_two_tasks_may_be_of_the_same_files_with_label_and_attribute_swapped(tmp_path):
    both = [(age, gender) for age in ("10s", "30s") for gender in ("female", "male")] * 10
    lines = [f"text {n}\t{age}\t{gender}" for n, (age, gender) in enumerate(both)]
    for split in ("train", "dev"):
        write(tmp_path / "blog_gender_age", split, lines, "text\tlabel\tgender")
    by_age, by_gender = (load_task(name, tmp_path) for name in ("blog_gender_age", "blog_gender"))
    assert (by_age.labels, by_gender.labels) == (("10s", "30s"), ("female", "male"))
    for split in ("train", "dev"):
        one, other = by_age.split(split), by_gender.split(split)
        assert one.texts == other.texts
        assert one.labels.tolist() == other.attributes["age_group"].tolist()
        assert one.attributes["gender"].tolist() == other.labels.tolist()


def test_environment_variable_names_the_data_folder(sst2, monkeypatch):
    monkeypatch.setenv("LEAKBOARD_DATA", str(sst2))
    assert load_task("sst2").hash == load_task("sst2", sst2).hash


def test_data_folder_that_does_not_exist_is_not_silently_replaced_by_the_hub(tmp_path):
    assert "no such folder (named by --data)" in failure(tmp_path / "dta")


@needs_data
@pytest.mark.parametrize("name", LABELLED)
def test_real_folder_loads_whole_with_known_labels_and_attributes(name):
    folder = DATA / CATALOGUE[name].folder
    if not folder.is_dir():
        pytest.skip(f"{name} is not among the real datasets in {DATA}")
    task = load_task(name, DATA)
    for split in ("dev", "test"):
        path = next(folder.glob(f"{split}.tsv*"))
        assert len(task.split(split)) == len(read_table(path))
    train, public = task.split("train"), task.split("auxiliary")
    whole = len(read_table(next(folder.glob("train.tsv*"))))
    assert len(train) + len(public) == whole
    assert 0.15 * whole < len(public) <= 0.2 * whole + 1
    assert set(train.labels.tolist()) == set(range(len(task.labels)))
    for attribute, names in task.attributes.items():
        assert set(train.attributes[attribute].tolist()) == set(range(len(names)))
