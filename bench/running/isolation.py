"""Isolation of attacks from the truth, and of one cell from the failure of another.

An attack of this package runs on a thread of its own, so that no frame above it holds the truth. One from outside
runs in a process of its own, where the truth is not in memory either. Its answers are arrays and text: nothing that it
sends is unpickled here.
"""

from __future__ import annotations

import dataclasses
import gc
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

import cloudpickle
import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.backbones import Backbone, Ragged, Tokens
from leakboard.bench.contracts import Channel, Goal, Guess, LeakboardError, MissingExtra, Transcript
from leakboard.bench.exchange import Diverged
from leakboard.bench.methods import Attack, Knowledge, Silent
from leakboard.bench.scoring import BadGuess

T = TypeVar("T")
OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Messages of a plain RuntimeError: of torch on the CPU; of CUDA, also from FAISS; and of cuBLAS."""
PACKAGE, FILE_MODULE = "leakboard.", "leakboard_file_"
"""Beginnings of the names of this package's modules, and of those that were read from a single file."""
START = "import sys; from leakboard.bench.running.isolation import serve; serve(int(sys.argv[1]))"
MOST_BYTES = 2**31
"""Largest message from the process of an attack."""
ARRAYS = ("rows", "values", "lengths")
"""Fields of a guess that are arrays."""


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory ran out, on the device or in this process."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )


def free_memory(device: str) -> None:
    """Returns unused GPU memory to other processes; call it after the error is out of scope."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device.startswith("mps"):
        torch.mps.empty_cache()


def error_line(error: BaseException) -> str:
    """One line about an error: its type, its message, and the line of code that raised it."""
    if isinstance(error, LeakboardError | BadGuess):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def run_isolated(call: Callable[[], T]) -> T:
    """Runs an attack on a thread of its own, so that no frame above it holds the truth."""
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(call())
        except BaseException as error:  # handed to the caller, whatever it is
            failure.append(error)

    thread = threading.Thread(target=work, name="attack", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def checked_guesses(
    attack: Attack, seen: Transcript, knowledge: Knowledge, rng: Generator
) -> list[Guess]:
    """The guesses of an attack.

    Raises:
        BadGuess: it returned something else.
    """
    guesses: object = attack.guess(seen, knowledge, rng)
    if not isinstance(guesses, list):
        raise BadGuess(f"guess must return a list of lb.Guess, got {type(guesses).__name__}")
    if others := sorted({type(one).__name__ for one in guesses if not isinstance(one, Guess)}):
        raise BadGuess(f"guess must return a list of lb.Guess, got one of {', '.join(others)}")
    return guesses


def is_external(method: object) -> bool:
    """True for a method that is not part of this package."""
    return not type(method).__module__.startswith(PACKAGE)


def guess_in_process(
    attack: Attack, seen: Transcript, knowledge: Knowledge, rng: Generator
) -> list[Guess]:
    """The guesses of an attack that runs in a process of its own; queries are answered by this one.

    Raises:
        Silent, Diverged, MissingExtra, MemoryError, LeakboardError: as the attack failed, or its process died.
    """
    ours, theirs = Pipe()
    given = (attack, seen, dataclasses.replace(knowledge, query=None), rng, torch.get_num_threads())
    with tempfile.TemporaryDirectory() as folder, ours:
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=_environment(),
            cwd=folder,
        )
        theirs.close()
        try:
            ours.send_bytes(_packed((*given, knowledge.query is not None)))
            return _answer(ours, knowledge, rng)
        except (EOFError, OSError) as error:
            process.kill()
            raise LeakboardError(
                f"the process of the attack died (exit code {process.wait()}) before it returned guesses"
            ) from error
        finally:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """The environment without the places of data and without secrets."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEAKBOARD_")}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def carry_files(*methods: object) -> None:
    """Lets cloudpickle carry the code of methods from single files, which another process cannot import."""
    for method in (part for one in methods for part in (one, *getattr(one, "parts", ()))):
        module = sys.modules.get(type(method).__module__)
        if module is not None and module.__name__.startswith(FILE_MODULE):
            cloudpickle.register_pickle_by_value(module)


def _packed(given: tuple[Any, ...]) -> bytes:
    """Serialises what an attack is given; code from single files goes along."""
    attack, _, knowledge, *_ = given
    carry_files(attack, knowledge.mechanism)
    content = io.BytesIO()
    _Pickler(content).dump(given)
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Leaves out the caches of a backbone."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Backbone):
            return Backbone, tuple(getattr(value, f.name) for f in dataclasses.fields(value))
        return super().reducer_override(value)


def _answer(pipe: Connection, knowledge: Knowledge, rng: Generator) -> list[Guess]:
    while True:
        words, arrays = _read(pipe)
        match words["kind"]:
            case "query":
                assert knowledge.query is not None
                noise = np.random.default_rng()
                noise.bit_generator.state = words["noise"]
                sent = knowledge.query(_tokens(arrays), noise)
                reply = (sent.values.cpu(), sent.lengths, noise.bit_generator.state)
                pipe.send_bytes(pickle.dumps(reply))
            case "guesses":
                rng.bit_generator.state = words["rng"]
                return [_guess(i, fields, arrays) for i, fields in enumerate(words["guesses"])]
            case "silent":
                raise Silent(words["reason"])
            case "diverged":
                raise Diverged(words["reason"])
            case "missing":
                raise MissingExtra(*words["reason"])
            case "out-of-memory":
                raise MemoryError(words["reason"])
            case _:
                raise LeakboardError(words["reason"])


def _guess(number: int, fields: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Guess:
    own = {name: arrays.get(f"{number}.{name}") for name in ARRAYS}
    channel = fields["channel"]
    return Guess(
        **fields
        | {"goal": Goal(fields["goal"]), "channel": None if channel is None else Channel(channel)}
        | own
    )


def serve(descriptor: int) -> None:
    """Runs the attack that arrives on a pipe, and sends its guesses; the entry point of its process."""
    with Connection(descriptor) as pipe:
        attack, seen, knowledge, rng, threads, queries = pickle.loads(pipe.recv_bytes())
        torch.set_num_threads(threads)
        if queries:
            knowledge = dataclasses.replace(knowledge, query=_Asking(pipe))
        try:
            guesses = checked_guesses(attack, seen, knowledge, rng)
            arrays = {
                f"{i}.{name}": array
                for i, guess in enumerate(guesses)
                for name in ARRAYS
                if (array := getattr(guess, name)) is not None
            }
            words = [
                {name: value for name, value in vars(guess).items() if name not in ARRAYS}
                for guess in guesses
            ]
            _write(pipe, "guesses", arrays, guesses=words, rng=rng.bit_generator.state)
        except MissingExtra as error:
            _write(pipe, "missing", reason=error.parts)
        except BaseException as error:  # sent to the caller, whatever it is
            reason = str(error) if isinstance(error, Silent | Diverged) else error_line(error)
            _write(pipe, _kind(error), reason=reason)


def _kind(error: BaseException) -> str:
    if isinstance(error, Silent | Diverged):
        return type(error).__name__.lower()
    return "out-of-memory" if is_out_of_memory(error) else "failed"


@dataclasses.dataclass(frozen=True)
class _Asking:
    """`Knowledge.query`, answered by the process that has the customer's side."""

    pipe: Connection

    def __call__(self, tokens: Tokens, rng: Generator) -> Ragged:
        arrays = {
            "ids": tokens.ids.values.cpu().numpy(),
            "lengths": tokens.lengths.numpy(),
            "types": tokens.types.cpu().numpy(),
            "special": tokens.special.cpu().numpy(),
        }
        _write(self.pipe, "query", arrays, noise=rng.bit_generator.state)
        values, lengths, state = pickle.loads(self.pipe.recv_bytes())
        rng.bit_generator.state = state
        return Ragged(values, lengths)


def _tokens(arrays: dict[str, NDArray[Any]]) -> Tokens:
    ids, lengths, types, special = (
        torch.from_numpy(arrays[name]) for name in ("ids", "lengths", "types", "special")
    )
    return Tokens(Ragged(ids, lengths), types, special)


def _write(pipe: Connection, kind: str, arrays: Any = None, **words: Any) -> None:
    content = io.BytesIO()
    text = np.array(json.dumps({"kind": kind} | words))
    np.savez(content, words=text, **(arrays or {}))
    pipe.send_bytes(content.getvalue())


def _read(pipe: Connection) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with np.load(io.BytesIO(pipe.recv_bytes(MOST_BYTES)), allow_pickle=False) as content:
        arrays = {name: content[name] for name in content.files}
    return json.loads(str(arrays.pop("words"))), arrays
