"""Records in dataset repositories of the Hugging Face hub: a snapshot, its table, and a card."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakboard.bench import __version__
from leakboard.bench.contracts import LeakboardError, MissingExtra, plain
from leakboard.bench.records import export
from leakboard.bench.tasks import hub_access
from leakboard.leaderboards.tables import RecordSet

SCHEME = "hf://"
ADDRESS = re.compile(r"hf://(?:datasets/)?([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
SNAPSHOT, TABLE, CARD = "records.parquet", "table.parquet", "README.md"
"""Files of a repository: the records byte for byte, `Results.frame`, and a description."""


def fetched(address: str) -> Path:
    """Path of the snapshot of a repository, downloaded unless it is in the hub's cache.

    Raises:
        LeakboardError: invalid address, no such repository or revision, no records in it, or no network.
        MissingExtra: huggingface_hub is not installed.
    """
    repo, revision = _parts(address)
    with _hub(address) as api:
        path = api.hf_hub_download(repo, SNAPSHOT, repo_type="dataset", revision=revision)
    return Path(path)


def upload(address: str, snapshot: Path, records: RecordSet, version: str) -> str:
    """Uploads a snapshot, its table and a card to a repository, which is created if there is none.

    Args:
        version: data version of the records in words, or an empty string.

    Returns:
        The address of the commit.

    Raises:
        LeakboardError: invalid address, or the hub refuses the upload.
        MissingExtra: huggingface_hub is not installed.
    """
    repo, revision = _parts(address)
    if revision is not None:
        raise LeakboardError(
            f"{address}: records are pushed to the newest revision; leave out @{revision}"
        )
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / TABLE
        export(records.frame(), table)
        content: dict[str, Path | bytes] = {
            SNAPSHOT: snapshot,
            TABLE: table,
            CARD: _card(repo, records, version).encode(),
        }
        with _hub(address) as api:
            from huggingface_hub import CommitOperationAdd

            api.create_repo(repo, repo_type="dataset", exist_ok=True)
            done = api.create_commit(  # all three files or none
                repo,
                [
                    CommitOperationAdd(path_in_repo=name, path_or_fileobj=data)
                    for name, data in content.items()
                ],
                commit_message=f"{len(records)} records, by Leakboard {__version__}",
                repo_type="dataset",
            )
    return str(done.commit_url)


@contextmanager
def _hub(address: str) -> Iterator[Any]:
    """The hub's API; its errors come with advice."""
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "hub") from error
    api = HfApi(library_name="leakboard", library_version=__version__)
    try:
        with hub_access(api.endpoint):
            yield api
    except Exception as error:  # errors of the network, the cache and the hub have no common base
        raise _hub_error(address, error) from error


def _parts(address: str) -> tuple[str, str | None]:
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise LeakboardError(
            f"'{plain(address, 120)}' is not a dataset repository: expected hf://OWNER/NAME, or hf://OWNER/NAME@REVISION"
        )
    return match[1], match[2]


def _hub_error(address: str, error: Exception) -> LeakboardError:
    """Error about the hub, with advice."""
    name, about = type(error).__name__, plain(str(error).strip().partition("\n")[0])
    advice = {
        "RepositoryNotFoundError": "there is no such dataset repository, or you have no access; log in by "
        "`hf auth login`",
        "RevisionNotFoundError": "it has no such revision",
        "RemoteEntryNotFoundError": f"it holds no {SNAPSHOT}; `leakboard push` writes one",
        "LocalEntryNotFoundError": f"the hub cannot be reached, and nothing is in the cache ({about})",
        "HFValidationError": about,
        "ConnectionError": about,
    }
    return LeakboardError(f"{address}: {advice.get(name, f'{name}: {about}')}")


def _card(repo: str, records: RecordSet, version: str) -> str:
    tasks = sorted({record.cell.task for record in records})
    defenses = sorted({record.cell.defense.name for record in records})
    of = f", {version}" if version else ""
    return f"""---
license: mit
pretty_name: {repo.partition("/")[2]}
tags: [privacy, benchmark, leakboard]
configs:
- config_name: default
  data_files: {TABLE}
---

# {repo.partition("/")[2]}

{len(records)} records of [Leakboard](https://pypi.org/project/leakboard/) {__version__}{of}: what private
fine-tuning leaks, and what its privacy costs.

Tasks: {", ".join(tasks)}. Defenses: {", ".join(defenses)}.

```python
import leakboard as lb

r = lb.load("hf://{repo}")
r.best()
```

`{SNAPSHOT}` holds the records byte for byte, with their checksums; `{TABLE}` a row per cell and attack.
"""
