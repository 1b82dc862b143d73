"""Budget of a plan on other hardware: time, memory and disk from counted passes through the model.

Each defense and each attack runs once on a narrow random model with as many blocks as the real one. A meter counts the
tokens that pass each block forward and backward. Passes times the weights of a real block give FLOPs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from torch import Tensor, nn

from leakboard.bench.backbones import BATCH, WIDTH, Architecture, Backbone, load_backbone
from leakboard.bench.contracts import (
    Cell,
    Channel,
    Knows,
    LeakboardError,
    Memory,
    Precision,
    Transcript,
    did_you_mean,
)
from leakboard.bench.exchange import Wire
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.cell_context import (
    CellContext,
    Inputs,
    PublicTexts,
    context_of,
    encode_public,
)
from leakboard.bench.running.grants import with_derived_channels, with_recomputed_activations
from leakboard.bench.running.isolation import error_line
from leakboard.bench.running.plan import Plan, PlannedCell
from leakboard.bench.tasks import Task, load_task

PROBE = 64
"""Examples of each split on which passes are counted."""
OPERATIONS = 40
"""Operations of a block in one direction, counted on BERT with LoRA by a dispatch mode."""
LAUNCH = 1e-5
"""Seconds in which a processor starts one operation of eager PyTorch; measured on one core of an AMD EPYC."""
WITHOUT_MODEL = {Knows.AUXILIARY_TEXT, Knows.LABELLED_SHARE, Knows.LABELS, Knows.COLLUSION}
"""Knowledge that contains no model; an attack with nothing else passes no token through one."""
NVIDIA = "https://www.nvidia.com/en-us/data-center"


@dataclass(frozen=True)
class Accelerator:
    """One device.

    Attributes:
        float32, bf16: peak TFLOP/s, dense. float32 is that of the ordinary units, since torch uses no TF32 by default.
        gigabytes: memory.
        source: of these numbers.
    """

    name: str
    float32: float
    bf16: float
    gigabytes: float
    source: str

    def peak(self, precision: Precision) -> float:
        """FLOP/s."""
        return 1e12 * (self.bf16 if precision == "bf16" else self.float32)


ACCELERATORS = {
    "h200": Accelerator("NVIDIA H200 SXM", 67, 989, 141, f"{NVIDIA}/h200/"),
    "h100": Accelerator("NVIDIA H100 SXM", 67, 989, 80, f"{NVIDIA}/h100/"),
    "a100": Accelerator("NVIDIA A100 80 GB SXM", 19.5, 312, 80, f"{NVIDIA}/a100/"),
    "l40s": Accelerator("NVIDIA L40S", 91.6, 362, 48, f"{NVIDIA}/l40s/"),
    "l4": Accelerator("NVIDIA L4", 30.3, 121, 24, f"{NVIDIA}/l4/"),
    "epyc-core": Accelerator(
        "core of an AMD EPYC with avx512_bf16", 0.105, 0.45, 8, "measured, on 480 × 384 × 1536"
    ),
}


def accelerator(name: str) -> Accelerator:
    """The accelerator of that name.

    Raises:
        LeakboardError: there is none.
    """
    if name not in ACCELERATORS:
        raise LeakboardError(f"--on: no accelerator '{name}'. {did_you_mean(name, ACCELERATORS)}")
    return ACCELERATORS[name]


@dataclass(frozen=True)
class Passes:
    """Passes of tokens through single blocks.

    Attributes:
        tokens: forward and backward; padding included.
        pairs: the same of pairs of tokens of one text, which attention compares.
        calls: calls of a block, forward and backward.
    """

    tokens: tuple[float, float] = (0, 0)
    pairs: tuple[float, float] = (0, 0)
    calls: float = 0

    def flops(self, shape: Architecture) -> float:
        """Floating-point operations; a product and a sum count as two.

        A frozen block takes as many to pass a gradient back as forward, and attention twice as many. Adapters are left out.
        """
        forward, backward = self.tokens
        seen, seen_back = self.pairs
        return 2 * shape.weights * (forward + backward) + 4 * shape.width * (seen + 2 * seen_back)

    def scaled(self, examples: float, length: float, batches: float | None = None) -> Passes:
        """The passes of so many times the examples, each of so many times the tokens.

        Args:
            batches: times the batches; by default those of the examples.
        """
        return Passes(
            (self.tokens[0] * examples * length, self.tokens[1] * examples * length),
            (self.pairs[0] * examples * length**2, self.pairs[1] * examples * length**2),
            self.calls * (examples if batches is None else batches),
        )

    def seconds(self, shape: Architecture, rate: float) -> float:
        """Time at `rate` FLOP/s, or that of starting the operations where this is longer."""
        return max(self.flops(shape) / rate, self.calls * OPERATIONS * LAUNCH)


@contextmanager
def metered(
    blocks: type[nn.Module] | tuple[type[nn.Module], ...],
) -> Iterator[Callable[[], Passes]]:
    """Counts passes through all modules of these classes; the function that it gives returns those so far."""
    counts = {"tokens": [0.0, 0.0], "pairs": [0.0, 0.0]}
    calls = 0

    def note(x: Tensor, way: int) -> None:
        nonlocal calls
        batch, length = x.shape[0], x.shape[1]
        counts["tokens"][way] += batch * length
        counts["pairs"][way] += batch * length**2
        calls += 1

    def hook(module: nn.Module, _: Any, out: Any) -> None:
        x = out[0] if isinstance(out, tuple) else out
        if not isinstance(module, blocks) or x.ndim != 3:
            return
        note(x, 0)
        if x.requires_grad:
            x.register_hook(lambda gradient: note(gradient, 1))

    handle = nn.modules.module.register_module_forward_hook(hook)
    try:
        yield lambda: Passes(
            (counts["tokens"][0], counts["tokens"][1]),
            (counts["pairs"][0], counts["pairs"][1]),
            calls,
        )
    finally:
        handle.remove()


@dataclass(frozen=True)
class Probe:
    """The passes of one cell on a narrow model, and its size.

    Attributes:
        passes: of training, of measuring utility, and of the attacks.
        bytes: of the transcript.
        sizes: training and evaluated examples, and their tokens in the mean.
        failure: why it could not be counted.
    """

    passes: tuple[Passes, Passes, Passes] = (Passes(), Passes(), Passes())
    bytes: float = 0
    sizes: tuple[int, int, float] = (1, 1, 1.0)
    failure: str = ""


def probe(context: CellContext) -> Probe:
    """Run a cell on a narrow model and count."""
    block = type(context.backbone.family.stack(context.backbone.model)[0])
    cell, inputs = context.cell, context.inputs
    wire = Wire(context.planned.defense.sends, inputs.recorded, cell.record.megabytes * 2**20)
    tokens = inputs.tokens[cell.evaluate]
    counted: list[Passes] = []
    session = context.session(wire)
    try:
        with metered(block) as meter:
            tuned = context.planned.defense.fine_tune(session)
            counted.append(meter())
        with metered(block) as meter:
            is_language = inputs.task.objective == "language modelling"
            (tuned.per_token if is_language else tuned.predict)(tokens, cell.evaluate)
            counted.append(meter())
        context, seen = replace(context, tuned=tuned), wire.transcript()
        size = _size(seen)
        with metered(block) as meter:
            seen = with_derived_channels(context, with_recomputed_activations(context, seen))
            attack_all(_with_models(context), seen, session.claim)
            counted.append(meter())
    except Exception as error:  # a plan is shown all the same
        return Probe(failure=error_line(error))
    return Probe((counted[0], counted[1], counted[2]), size, _sizes(context, cell))


def _with_models(context: CellContext) -> CellContext:
    """The context without the attacks that use no model, which would take time and add no pass."""
    planned = context.planned
    pairings = tuple(p for p in planned.pairings if p.attack.needs - WITHOUT_MODEL)
    return replace(context, planned=replace(planned, pairings=pairings))


def _size(seen: Transcript) -> float:
    """Bytes of the vectors of a transcript; token ids are left out."""
    return float(sum(m.values.nbytes for m in seen.messages if m.channel != Channel.TOKENS))


@dataclass(frozen=True)
class CellBudget:
    """What one cell takes.

    Attributes:
        seconds: of training, of measuring utility, and of the attacks.
        gigabytes: of memory, at most.
        disk: bytes of its transcript, if that is kept.
    """

    planned: PlannedCell
    flops: float
    seconds: tuple[float, float, float]
    gigabytes: float
    disk: float
    failure: str = ""


def budget(
    plan: Plan, shape: Architecture, hardware: Accelerator, efficiency: float
) -> list[CellBudget]:
    """What each cell of a plan takes on an accelerator, with `shape` in place of the plan's models.

    Cells of several seeds, and of tasks with the same objective, are counted once. Shadow models are counted as their cells
    without attacks.

    Args:
        efficiency: share of the accelerator's peak that products reach.
    """
    probes: dict[str, Probe] = {}
    public: dict[tuple[str, int], PublicTexts] = {}
    sizes = dict[tuple[Any, ...], tuple[int, int, float]]()
    found = []
    for planned in plan.cells:
        if planned.skip_reason:
            continue
        cell, task = planned.cell, plan.tasks[planned.cell.data_hash]
        is_language = task.objective == "language modelling"
        narrow = f"tiny-{'gpt2' if is_language else 'bert'}-{shape.blocks}"
        name = repr((narrow, planned.named, cell.cut, cell.train, cell.shadow is None))
        if name not in probes:
            probes[name] = probe(_narrow(planned, plan, narrow, public))
        about = cell.data_hash, cell.model_hash, cell.limit, cell.evaluate, cell.train.max_length
        if about not in sizes:
            sizes[about] = _sizes(context_of(replace(plan, public={}), planned), cell)
        found.append(_scaled(planned, probes[name], sizes[about], shape, hardware, efficiency))
    return found


def architecture_of(plan: Plan) -> Architecture:
    """The architecture of the one model of a plan.

    Raises:
        LeakboardError: it has several models.
    """
    if len(plan.backbones) > 1:
        names = ", ".join(each.name for each in plan.backbones.values())
        raise LeakboardError(
            f"--on: the suite has several models ({names}); choose one with --model"
        )
    (backbone,) = plan.backbones.values()
    return Architecture.of(backbone.name, backbone.model)


@cache
def _parts(model: str) -> tuple[Task, Backbone]:
    return load_task("dialogues" if "gpt2" in model else "reviews"), load_backbone(model)


def _narrow(
    planned: PlannedCell, plan: Plan, model: str, public: dict[tuple[str, int], PublicTexts]
) -> CellContext:
    """The context of a cell with generated texts and a narrow model, which also takes the place of models of attacks.

    Args:
        public: tokenised public texts by model and length, to which those of this cell are added.
    """
    (task, backbone), cell = _parts(model), planned.cell
    backbone = replace(backbone)  # one that has computed nothing for an earlier cell
    plant = cell.plant
    if plant is not None:
        plant = plant.model_copy(update={"audit": min(plant.audit, PROBE // 2)})
    small = {
        "task": task.name,
        "data_hash": task.hash,
        "model": backbone.name,
        "model_hash": backbone.hash,
        "limit": PROBE,
        "evaluate": cell.evaluate if cell.evaluate in task.splits else "dev",
        "plant": plant,
    }
    cell = cell.model_copy(update=small)
    kept = model, cell.train.max_length
    if kept not in public:
        public[kept] = encode_public(cell, task, backbone, plan.public)
    fresh = {name: replace(each, learned=Memory()) for name, each in public[kept].items()}
    inputs = Inputs.of(cell, task, backbone, fresh, plan.secret)
    pairings = tuple(
        replace(each, attack=each.attack.model_copy(update={"model": None}))
        if getattr(each.attack, "model", None)
        else each
        for each in planned.pairings
    )
    planned = replace(planned, cell=cell, pairings=pairings)
    return CellContext(planned, inputs, backbone, secret=plan.secret)


def _sizes(context: CellContext, cell: Cell) -> tuple[int, int, float]:
    """Training and evaluated examples, and their tokens in the mean."""
    train, evaluated = (context.inputs.tokens[split] for split in ("train", cell.evaluate))
    return len(train), len(evaluated), float(train.lengths.float().mean())


def _batches(examples: int, size: int = BATCH) -> int:
    return -(-examples // size)


def _scaled(
    planned: PlannedCell,
    counted: Probe,
    sizes: tuple[int, int, float],
    shape: Architecture,
    hardware: Accelerator,
    efficiency: float,
) -> CellBudget:
    cell = planned.cell
    (train, evaluated, length), (few, fewer, short) = sizes, counted.sizes
    recorded = min(cell.record.examples, train) / min(cell.record.examples, few)
    times = train / few, evaluated / fewer, recorded
    steps = _batches(train, cell.train.batch_size) / _batches(few, cell.train.batch_size)
    batches = steps, _batches(evaluated) / _batches(fewer), recorded
    each = zip(counted.passes, times, batches, strict=True)
    parts = [passes.scaled(n, length / short, m) for passes, n, m in each]
    rate = efficiency * hardware.peak(cell.train.precision)
    seconds = [part.seconds(shape, rate) for part in parts]
    disk = counted.bytes * recorded * length / short * shape.width / WIDTH
    return CellBudget(
        planned,
        sum(part.flops(shape) for part in parts),
        (seconds[0], seconds[1], seconds[2]),
        shape.memory(cell.train.batch_size, cell.train.max_length) / 1e9,
        min(disk, cell.record.megabytes * 2**20),
        counted.failure,
    )
