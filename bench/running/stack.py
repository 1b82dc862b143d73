"""Several cells over one backbone by turns, whose passes through it are made together.

Each cell runs as it would alone, on a thread of its own, but one at a time and with a random state of its
own: at a pass it waits until all others have come to theirs, too. Those that fit are then one pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.backbones import (
    Joined,
    Network,
    Part,
    Pass,
    Ragged,
    Share,
    Stacked,
    random_state,
    set_random_state,
    weights_of,
)
from leakboard.bench.contracts import Progress, Record
from leakboard.bench.running.failures import give_back, told

PATIENCE = 10.0
"""Seconds that a cell has to end when the run is stopped."""


class Stopped(BaseException):
    """Ends a cell of a run that was stopped; no record comes of it."""


@dataclass(frozen=True)
class Back:
    """A pass back through a share: its pass, the number of the part, and the gradient at its features."""

    made: Pass
    number: int
    gradient: Tensor


class Place:
    """One cell of a stack, and the `Seat` of its network.

    Attributes:
        widest: most cells that one of its passes held.
    """

    def __init__(self, stack: Stack, work: Callable[[Place], Record]) -> None:
        self.widest = 1
        self.asked: Part | Back | None = None
        self.answer: Any = None
        self.record: Record | None = None
        self.failure: BaseException | None = None
        self.state = stack.state()
        self.stopped = False
        self._stack, self._work = stack, work
        self._go = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, name="cell", daemon=True)

    @property
    def ended(self) -> bool:
        return self.record is not None or self.failure is not None

    def features(self, network: Network, h: Ragged, types: Tensor) -> Tensor | None:
        """See `Seat`."""
        share: Share | None = self._ask(Part.of(network, h, types))
        if share is None or not torch.is_grad_enabled():
            return None if share is None else share.features
        joined: Tensor = Joined.apply(share, h.values, *weights_of(network))  # type: ignore[no-untyped-call]
        return joined

    def back(self, made: Pass, number: int, gradient: Tensor) -> Sequence[Tensor | None]:
        """See `Share`."""
        found: Sequence[Tensor | None] = self._ask(Back(made, number, gradient))
        return found

    def watched(self, progress: Progress) -> Progress:
        """The same, and the cell ends there where the run was stopped."""

        def watch(what: str, items: Iterable[Any], total: int) -> Iterator[Any]:
            for item in progress(what, items, total):
                if self.stopped:
                    raise Stopped
                yield item

        return watch

    def turn(self) -> None:
        """Lets the cell run, and nothing else, until it asks for something or ends."""
        self._stack.restore(self.state)
        self.answered()
        self._stack.came.acquire()
        self.state = self._stack.state()

    def answered(self) -> None:
        """Wakes the cell."""
        self._go.release()

    def _ask(self, asked: Part | Back) -> Any:
        self.asked = asked
        self._stack.came.release()
        self._go.acquire()
        if self.stopped:
            raise Stopped
        answer, self.asked, self.answer = self.answer, None, None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self.stopped:
                # A pass back is waited for here; a thread of the device would keep all others waiting.
                with torch.autograd.set_multithreading_enabled(False):
                    self.record = self._work(self)
        except BaseException as error:  # handed to the one who waits for the cell
            self.failure = error
        self._stack.came.release()


@dataclass
class Stack:
    """Cells that are run together.

    Attributes:
        warned: told once why no more passes are made together, if so.
        came: released by a cell that asks for something, or has ended.
    """

    device: str
    warned: Callable[[str], None]
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _models: dict[tuple[Any, ...], Stacked] = field(default_factory=dict)
    _apart: bool = False

    def run(
        self, works: Sequence[Callable[[Place], Record]], done: Callable[[int, Record], None]
    ) -> None:
        """Runs all to their ends.

        Args:
            works: a cell each, given its place.
            done: told at once of each record, with its number.

        Raises:
            Whatever a cell raises ends all others, as does Ctrl-C.
        """
        places = [Place(self, work) for work in works]
        for place in places:
            place.thread.start()
        try:
            while waiting := [place for place in places if not place.ended]:
                for place in waiting:
                    place.turn()
                    if place.failure is not None:
                        raise place.failure
                    if place.record is not None:
                        done(places.index(place), place.record)
                self._serve([place for place in waiting if not place.ended])
        finally:
            for place in places:
                place.stopped = True
                place.answered()
            for place in places:
                place.thread.join(PATIENCE)

    def state(self) -> tuple[Tensor, Tensor]:
        """Where all random generators of torch stand."""
        return random_state("cpu"), random_state(self.device)

    def restore(self, state: tuple[Tensor, Tensor]) -> None:
        """Goes back to an earlier state."""
        for one, device in zip(state, ("cpu", self.device), strict=True):
            set_random_state(one, device)

    def _serve(self, places: Sequence[Place]) -> None:
        """Answers what all have asked for, as few passes as possible."""
        alike: dict[Any, list[Place]] = {}
        for place in places:
            asked = place.asked
            assert asked is not None
            which = asked.kind if isinstance(asked, Part) else id(asked.made)
            alike.setdefault(which, []).append(place)
        for group in alike.values():
            if isinstance(group[0].asked, Back):
                self._passed_back(group)
            elif len(group) > 1 and not self._apart:
                self._passed(group)

    def _passed(self, group: Sequence[Place]) -> None:
        """One pass for all, or none where it cannot be made: then each makes its own."""
        parts = [place.asked for place in group if isinstance(place.asked, Part)]
        try:
            if parts[0].kind not in self._models:
                self._models[parts[0].kind] = Stacked(parts[0].network)
            made = self._models[parts[0].kind].passed(parts)
        except Exception as error:
            self._apart = True
            self.warned(f"the cells are not stacked any more: {told(error)}")
        if self._apart:
            give_back(self.device)
            return
        for number, place in enumerate(group):
            place.answer = Share(
                made.features(number),
                lambda g, p=place, n=number: p.back(made, n, g),  # type: ignore[misc]
            )
            place.state = (place.state[0], made.states[number])
            place.widest = max(place.widest, len(group))

    def _passed_back(self, group: Sequence[Place]) -> None:
        asked = [place.asked for place in group if isinstance(place.asked, Back)]
        try:
            found = asked[0].made.backward({one.number: one.gradient for one in asked})
        except Exception as error:
            for place in group:
                place.answer = error
            return
        for place, one in zip(group, asked, strict=True):
            place.answer = found[one.number]
