"""Printed tables beside records that are made up."""

from __future__ import annotations

from boards import cell

from leakboard.leaderboards.tables.paper_tables import paper_tables
from leakboard.leaderboards.tables.results import results_table

SST2 = {"task": "sst2"}


def sap(eta, bottom="frozen", success=0.4, **fields):
    params = {"eta": eta, "bottom": bottom, "bottom_learning_rate": 1e-5}
    return cell("sap", success=success, params=params, **(SST2 | fields))


def laid(paper, artefact, **folders):
    """The printed table for its first model, beside the records of some folders."""
    every = {record.key: record for own in folders.values() for record in own}
    keys = {name: frozenset(record.key for record in own) for name, own in folders.items()}
    return paper_tables(results_table(every.values()), keys, [(paper, artefact)])[0]


def row_of(one, **stated):
    """The row of a printed table in which these words stand."""
    told = one.frame
    for name, value in stated.items():
        told = told[told[name] == value]
    (row,) = told.to_dict("records")
    return row
