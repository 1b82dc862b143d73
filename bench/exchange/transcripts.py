"""Reading and writing transcript folders, so that a recorded system can be attacked elsewhere.

A folder contains `manifest.json` and the messages in safetensors files. Message number i has the tensors `i.rows`,
`i.values` and, if examples differ in length, `i.lengths`; see `Message`.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import (
    LeakboardError,
    Message,
    Objective,
    Refused,
    TrainSettings,
    Transcript,
    did_you_mean,
    form,
    parsed,
    place,
    plain,
)
from leakboard.bench.exchange.manifest import (
    FORMAT,
    MANIFEST,
    MOST_MESSAGES,
    Manifest,
    Missing,
    PublicModel,
    Sent,
    Training,
)
from leakboard.bench.exchange.validation import as_arrays, check

FILE_BYTES = 2**26
"""Approximate size of a file of messages, and so the memory that writing needs."""
PIECE = 2**22
"""Values that are checked in one piece."""
MOST_BYTES = 2**27
"""Largest manifest that is read."""
LABELS: Mapping[Objective | None, Literal["numbers", "sets"]] = {
    "regression": "numbers",
    "multilabel": "sets",
}
NOTHING = Missing()
UNFINISHED = re.compile(rf"messages-\d+\.safetensors|{re.escape(MANIFEST)}")
"""Files of a transcript."""


def write_transcript(
    transcript: Transcript,
    folder: Path,
    backbone: Backbone | PublicModel,
    cut: int,
    classes: int | Sequence[str],
    train: TrainSettings | None = None,
    missing: Missing = NOTHING,
    objective: Objective | None = None,
    training: Training | None = None,
) -> Manifest:
    """Writes a transcript into a new folder, completely or not at all: it is made beside it and renamed.

    An empty folder, and one that holds files of an unfinished transcript and nothing else, is replaced.

    Args:
        transcript: its arrays may be lists, tensors, or NumPy arrays of any type that converts without loss.
        backbone: the public model behind the transcript.
        classes: number of classes, 0 for language modelling; or their names in the order of the logits.
        train: shape and training of adapters, if adapters were sent.
        missing: what was seen but is not in `transcript`.
        objective: by default classification, or language modelling without classes.
        training: what is known of a training that was recorded.

    Raises:
        LeakboardError: the folder already has a transcript or other files, or is not writable, or a message is
            malformed.
    """
    from safetensors import SafetensorError

    _expect_room(folder)
    model = backbone if isinstance(backbone, PublicModel) else PublicModel.of(backbone, cut)
    if isinstance(backbone, Backbone):
        backbone.check_cut(cut)
    transcript = as_arrays(transcript, f"{folder}")
    rows = check(transcript, model.vocabulary, model.width, f"{folder}")
    sent: list[Sent] = []
    files: dict[str, int] = {}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}-"
        ) as unfinished:
            made = Path(unfinished) / "transcript"
            made.mkdir()
            for name, numbered in _files(transcript.messages):
                files[name] = _save(made / name, numbered)
                sent += [_without_arrays(message, name) for _, message in numbered]
            manifest = Manifest(
                model=model.name,
                model_hash=model.hash,
                cut=cut,
                vocabulary=model.vocabulary,
                classes=classes if isinstance(classes, int) else len(classes),
                labels=() if isinstance(classes, int) else tuple(classes),
                labels_are=LABELS.get(objective),
                train=train,
                training=training,
                splits={split: len(each) for split, each in rows.items()},
                files=files,
                dropped=transcript.dropped,
                cut_short=plain(" ".join(missing.cut_short.split()), 2000),
                left_out=missing.left_out,
                messages=sent,
            )
            content = manifest.model_dump_json(indent=1) + "\n"
            (made / MANIFEST).write_text(content, encoding="utf-8")
            for left in _unfinished_files(folder):
                left.unlink()
            made.replace(folder)
    except (OSError, SafetensorError) as error:
        raise LeakboardError(
            f"{folder}: the transcript could not be written ({getattr(error, 'strerror', None) or error})"
        ) from error
    except ValidationError as error:
        raise LeakboardError(f"{folder}: {_first_error(error)}") from error
    return manifest


def has_transcript(folder: Path) -> bool:
    """Whether a folder holds a transcript with all of its files, each as long as its manifest says."""
    try:
        sizes = _manifest(folder).files
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (LeakboardError, OSError):
        return False


def _unfinished_files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if UNFINISHED.fullmatch(path.name)]


def _expect_room(folder: Path) -> None:
    """Raises LeakboardError where a folder holds more than parts of an unfinished transcript."""
    if has_transcript(folder):
        raise LeakboardError(f"{folder}: already contains a transcript; choose another folder")
    if folder.is_dir():
        others = {path.name for path in folder.iterdir()}
        others -= {path.name for path in _unfinished_files(folder)}
        if others:
            raise LeakboardError(
                f"{folder}: is not empty ({plain(min(others), 80)}); choose another folder"
            )


def read_transcript(folder: Path, backbone: Backbone | None = None) -> tuple[Manifest, Transcript]:
    """Reads the transcript of a folder; values stay on disk until they are used.

    Args:
        backbone: the expected model. If the manifest has no hash of a model, only the vocabulary and the
            width must match.

    Raises:
        LeakboardError: no transcript, a later format, damaged, malformed, or of another model.
    """
    folder = place(folder)
    manifest = _manifest(folder)
    for name, size in manifest.files.items():
        path = folder / name
        if Path(name).name != name or not path.is_file():
            raise LeakboardError(f"{path}: the manifest names this file, but it does not exist")
        if path.stat().st_size != size:
            raise LeakboardError(
                f"{path}: has {path.stat().st_size} bytes, but the manifest says {size}. "
                "It was truncated or changed; copy it again"
            )
    if backbone is not None:
        _same_model(manifest, backbone, f"{folder / MANIFEST}")
    transcript = Transcript(tuple(_messages(folder, manifest)), manifest.dropped)
    transcript = as_arrays(transcript, f"{folder}")
    width = backbone.width_at(manifest.cut) if backbone and manifest.vocabulary else None
    rows = check(transcript, manifest.vocabulary, width, f"{folder}")
    if (there := {split: len(each) for split, each in rows.items()}) != manifest.splits:
        raise LeakboardError(
            f"{folder / MANIFEST}: splits: says {_numbers(manifest.splits)}, and the messages are about "
            f"{_numbers(there)}. It was changed; copy it again"
        )
    _check_finite(folder, manifest)
    return manifest, transcript


def _check_finite(folder: Path, manifest: Manifest) -> None:
    """Checks all values, piece by piece so that memory holds one piece at a time."""
    from safetensors import safe_open

    for name in manifest.files:
        with safe_open(folder / name, "numpy") as file:
            for tensor in file.keys():  # noqa: SIM118 (not a mapping)
                values = file.get_slice(tensor)
                shape = values.get_shape()
                if values.get_dtype() != "F32" or not shape:
                    continue
                rows = max(1, PIECE // max(1, math.prod(shape[1:])))
                for at in range(0, shape[0], rows):
                    if not np.isfinite(values[at : min(at + rows, shape[0])]).all():
                        raise LeakboardError(
                            f"{folder / name}: message {tensor.removesuffix('.values')}: values must "
                            "be finite, got NaN or infinity. Record only what was sent before that"
                        )


def _numbers(splits: Mapping[str, int]) -> str:
    return ", ".join(f"{n} of {split}" for split, n in list(splits.items())[:10]) or "none"


def _files(messages: Iterable[Message]) -> Iterator[tuple[str, list[tuple[int, Message]]]]:
    """File names, each with its numbered messages."""
    in_file: list[tuple[int, Message]] = []
    files = size = 0
    for i, message in enumerate(messages):
        if in_file and size + message.values.nbytes > FILE_BYTES:
            yield f"messages-{files:05}.safetensors", in_file
            files, in_file, size = files + 1, [], 0
        in_file.append((i, message))
        size += message.values.nbytes
    if in_file:
        yield f"messages-{files:05}.safetensors", in_file


def _save(path: Path, numbered: Iterable[tuple[int, Message]]) -> int:
    """Writes one file and returns its size."""
    from safetensors.numpy import save_file

    tensors = {}
    for i, message in numbered:
        arrays = {"rows": message.rows, "values": message.values, "lengths": message.lengths}
        for name, array in arrays.items():
            if array is not None:
                tensors[f"{i}.{name}"] = np.ascontiguousarray(array)
    save_file(tensors, path)
    return path.stat().st_size


def _without_arrays(message: Message, file: str) -> Sent:
    return Sent(
        **{name: getattr(message, name) for name in Sent.model_fields if name in vars(message)},
        examples=len(message.rows),
        ragged=message.lengths is not None,
        shape=list(message.values.shape),
        dtype=str(message.values.dtype),
        file=file,
    )


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise LeakboardError(
            f"{plain(folder)}: not a transcript; expected a folder with a file {MANIFEST} "
            "(results/README.md says how to write one)"
        )
    if path.stat().st_size > MOST_BYTES:
        raise LeakboardError(
            f"{path}: is larger than {MOST_BYTES // 2**20} MiB; record fewer messages"
        )
    try:
        content = parsed(path.read_bytes(), str(path), parts=3 * MOST_MESSAGES)
    except Refused as error:
        raise LeakboardError(str(error)) from error
    version = content.get("format") if isinstance(content, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise LeakboardError(
            f"{path}: written in format {version}, but this version of leakboard reads up to {FORMAT}. "
            "Upgrade leakboard"
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise LeakboardError(f"{path}: {_first_error(error)}") from error


def _messages(folder: Path, manifest: Manifest) -> Iterator[Message]:
    from safetensors import SafetensorError, safe_open

    opened: dict[str, Any] = {}
    for i, sent in enumerate(manifest.messages):
        if sent.file not in manifest.files:
            hint = did_you_mean(sent.file, manifest.files)
            raise LeakboardError(f"{folder / MANIFEST}: message {i}: no file {sent.file}. {hint}")
        try:
            # As tensors of torch they are mapped; as arrays of numpy they would be copied.
            if sent.file not in opened:
                opened[sent.file] = safe_open(folder / sent.file, "pt")
            names = ["rows", "values", *(["lengths"] if sent.ragged else [])]
            found = {name: opened[sent.file].get_tensor(f"{i}.{name}").numpy() for name in names}
        except (SafetensorError, OSError, TypeError) as error:  # numpy has not all types of torch
            raise LeakboardError(f"{folder / sent.file}: message {i}: {error}") from error
        for array in found.values():
            array.setflags(write=False)
        expected = f"{sent.dtype} {sent.shape} of {sent.examples} examples"
        if (has := f"{form(found['values'])} of {len(found['rows'])} examples") != expected:
            raise LeakboardError(
                f"{folder / sent.file}: message {i}: {has}, the manifest says {expected}"
            )
        where = sent.model_dump(exclude={"examples", "ragged", "shape", "dtype", "file"})
        yield Message(**where, **found)


def _same_model(manifest: Manifest, backbone: Backbone, where: str) -> None:
    own = len(backbone.embeddings)
    if manifest.vocabulary not in (None, own):
        raise LeakboardError(
            f"{where}: was recorded with the model '{manifest.model}' of {manifest.vocabulary} token "
            f"ids, not with '{backbone.name}' of {own}. Use the same model"
        )
    if manifest.model_hash is None:
        return
    if manifest.model_hash != backbone.hash:
        raise LeakboardError(
            f"{where}: was recorded with the model '{manifest.model}' (hash "
            f"{manifest.model_hash[:12]}…), not with '{backbone.name}' ({backbone.hash[:12]}…). "
            "Use the same model with the same weights"
        )
    backbone.check_cut(manifest.cut)


def _first_error(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
