"""Accelerators for which a run can be budgeted: peak rates and memory from the data sheets of their makers."""

from __future__ import annotations

from dataclasses import dataclass

from leakboard.bench.contracts import LeakboardError, Precision, did_you_mean

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
