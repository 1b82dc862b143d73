"""Local tasks, models and methods with which cells of a submission can be reproduced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakboard.bench.backbones import EMBEDDED, check_models, load_backbone
from leakboard.bench.contracts import LeakboardError, Record, did_you_mean, plain
from leakboard.bench.methods import registry
from leakboard.bench.running import check_unchanged, methods_of_record
from leakboard.bench.tasks import GENERATED, Task, data_folder, listing, load_task


class LocalResources:
    """Data and models of the machine that verifies. Each is loaded once.

    Args:
        data: folder of datasets.
        model: name or folder of the model of cells whose model is not embedded.
        device: where cells are run again.
    """

    def __init__(
        self, data: Path | None = None, model: str | None = None, device: str = "cpu"
    ) -> None:
        self.data, self.model, self.device = data, model, device
        self._tasks: dict[str, Task | LeakboardError] = {}
        self._models: dict[str, tuple[str, str] | LeakboardError] = {}

    def task(self, name: str) -> Task:
        """A task from the generators or the folder of datasets, never from the hub.

        Raises:
            LeakboardError: the task is not available on this machine.
        """
        if name not in self._tasks:
            try:
                known = [task.name for task in listing()]
                if name not in known:
                    raise LeakboardError(f"unknown task '{name}'. {did_you_mean(name, known)}")
                folder = data_folder(self.data)
                if name not in GENERATED and (folder is None or not (folder / name).is_dir()):
                    raise LeakboardError(
                        f"its data '{name}' are not on this machine; give --data DIR"
                    )
                self._tasks[name] = load_task(name, self.data)
            except LeakboardError as error:
                self._tasks[name] = error
        found = self._tasks[name]
        if isinstance(found, LeakboardError):
            raise found
        return found

    def where(self, model: str) -> str:
        """Name or folder from which a model is loaded.

        Raises:
            LeakboardError: the model is not on this machine.
        """
        if model in EMBEDDED:
            return model
        if self.model is None:
            raise LeakboardError(f"its model '{model}' is not on this machine; give --model FOLDER")
        return self.model

    def _model(self, name: str) -> tuple[str, str]:
        """Name and hash of the local model for a model name."""
        if name not in self._models:
            try:
                loaded = load_backbone(self.where(name))
                self._models[name] = loaded.name, loaded.hash
            except LeakboardError as error:
                self._models[name] = error
        found = self._models[name]
        if isinstance(found, LeakboardError):
            raise found
        return found

    def obstacle(self, record: Record) -> str | None:
        """The reason why the cell of a record cannot be run again on this machine, or None."""
        cell = record.cell
        try:
            for params in (cell.defense.params, *(leak.attack.params for leak in record.leaks)):
                _no_paths(params)
            task = self.task(cell.task)
            self.where(cell.model)
            _, attacks = methods_of_record(record)
            check_models(getattr(attack, "model", None) for attack in attacks)
            check_unchanged(record, cell.model_copy(update={"data_hash": task.hash}))
            name, hashed = self._model(cell.model)
            check_unchanged(record, cell.model_copy(update={"model": name, "model_hash": hashed}))
        except Exception as error:  # validators of methods may raise anything
            # Without keys, cells of one method have the same reason and are counted together.
            lines = str(error).replace(f"record {record.key} ", "it ").splitlines()
            return plain(" ".join(line.strip() for line in lines))
        return None


def local_method(here: LocalResources, record: Record) -> tuple[Any, Task] | None:
    """The defense and the task of a record, by which attacks are paired; None if one is not available."""
    spec = record.cell.defense
    try:
        return registry.defense(spec.name)(**spec.params), here.task(record.cell.task)
    except Exception:  # validators may raise anything
        return None


def _no_paths(params: Any) -> None:
    """Raise LeakboardError for parameters that name files, since methods might open them."""
    values = params.values() if isinstance(params, dict) else params
    for value in values:
        if isinstance(value, dict | list):
            _no_paths(value)
        elif isinstance(value, str) and _is_path(value):
            raise LeakboardError(
                f"its parameter '{plain(value, 80)}' is a path; paths in submissions are not opened"
            )


def _is_path(text: str) -> bool:
    try:
        return bool(set(text) & set("/\\~")) or Path(text).exists()
    except (OSError, ValueError):  # too long for one
        return False
