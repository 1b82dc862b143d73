"""Models and loops that a Recorder cannot see into, which it refuses with a remedy."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from leakboard.bench.contracts import LeakboardError

SHARDED = {"FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine", "PipelineModule"}
"""Classes of modules that hold only a part of the parameters."""
COMPILED = (
    "model: it is compiled, and compiled passes run no hooks. Record the model without torch.compile (in a "
    "Trainer: torch_compile=False), and compile it afterwards"
)
SEVERAL_GPUS = (
    "model: DataParallel splits each batch over several GPUs, and their copies are not seen. Train on one GPU "
    "while you record: CUDA_VISIBLE_DEVICES=0"
)
SEVERAL_PROCESSES = (
    "model: it is trained by {} processes, and each of them sees only a part of the batches. Record a run of one process "
    "(accelerate launch --num_processes 1, or python instead of torchrun)"
)
SHARDS = (
    "model: {} keeps only a part of each parameter in this process. Record a run without sharding (FSDP, DeepSpeed), "
    "on one GPU, with fewer examples or a smaller model of the family if memory is short"
)


def check_model(model: nn.Module, trainer: Any = None) -> None:
    """Refuse a model, and a Trainer, whose passes cannot be seen.

    Raises:
        LeakboardError: it is compiled, sharded, or spread over GPUs or processes.
    """
    for module in model.modules():
        names = {kind.__name__ for kind in type(module).__mro__}
        compiled = "OptimizedModule" in names or isinstance(module, torch.jit.ScriptModule)
        if compiled or getattr(module, "_compiled_call_impl", None) is not None:
            raise LeakboardError(COMPILED)
        if "DataParallel" in names and len(getattr(module, "device_ids", ())) > 1:
            raise LeakboardError(SEVERAL_GPUS)
        if names & SHARDED:
            raise LeakboardError(SHARDS.format(type(module).__name__))
    if any(type(parameter).__name__ == "DTensor" for parameter in model.parameters()):
        raise LeakboardError(SHARDS.format("a DTensor"))
    settings = getattr(trainer, "args", None)
    if getattr(settings, "torch_compile", False) is True:
        raise LeakboardError(COMPILED)
    if isinstance(gpus := getattr(settings, "n_gpu", 0), int) and gpus > 1:
        raise LeakboardError(SEVERAL_GPUS)
    for name in ("fsdp", "deepspeed"):
        if getattr(settings, name, None):
            raise LeakboardError(SHARDS.format(name))
    _check_processes()


@torch.compiler.disable  # type: ignore[untyped-decorator]
def check_pass(module: nn.Module, compiling: bool) -> None:
    """Refuse a pass that does not run as it seems, at its beginning.

    Args:
        compiling: whether the caller is being compiled; this function never is, so that its error is raised.

    Raises:
        LeakboardError: as `check_model`, of what happened to the model since then.
    """
    if getattr(module, "_is_replica", False):
        raise LeakboardError(SEVERAL_GPUS)
    if compiling:
        raise LeakboardError(COMPILED)
    _check_processes()


def _check_processes() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        processes = torch.distributed.get_world_size()
        if processes > 1:
            raise LeakboardError(SEVERAL_PROCESSES.format(processes))
