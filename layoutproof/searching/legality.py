"""The answer about one configuration of a function's block sizes, and why it is so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypedDict

from layoutproof.core.amounts import size
from layoutproof.core.document import Doc
from layoutproof.core.errors import Undecided, shorten
from layoutproof.core.finding import VerdictWord
from layoutproof.core.result import Verdict

WORDS = {Verdict.PROVED: "legal", Verdict.REFUTED: "refused", Verdict.UNKNOWN: "unknown"}
"""What a verdict means of a configuration."""


class LegalityEntry(TypedDict):
    """The answer about one configuration."""

    configuration: Annotated[dict[str, int], Doc("the value of each parameter")]
    verdict: VerdictWord
    rules: VerdictWord
    reason: Annotated[str, Doc("why it is refuted or unknown; empty where it is proved")]
    question: Annotated[str, Doc("the property of kernels that is not proved; empty for another reason")]
    vmem_bytes: Annotated[int | None, Doc("the least VMEM of its largest kernel, whatever the compiler chooses")]
    vmem_limit: Annotated[int | None, Doc("the VMEM that this kernel may use, in bytes")]
    vmem_estimate: Annotated[int | None, Doc("the compiler's own VMEM by the model, in bytes")]
    vmem_error: Annotated[list[float], Doc("the compiler's VMEM over the estimate, least and most, where measured")]
    smem_bytes: Annotated[int | None, Doc("of a GPU: the least shared memory of its largest kernel, in bytes")]
    smem_limit: Annotated[int | None, Doc("the shared memory that it may use, in bytes")]
    steps: Annotated[int | None, Doc("programs of all its kernels")]
    traffic: Annotated[int | None, Doc("bytes between HBM and VMEM by the model, of all its kernels")]
    time: Annotated[int | None, Doc("picoseconds by the model; what bodies compute is not in it")]
    traced: Annotated[bool, Doc("whether the function was traced with these numbers")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Legality:
    """The answer about one configuration. `bool` of it is True where it is legal, False where it is refused.

    Attributes:
        configuration: The value of each parameter.
        verdict: PROVED: legal. No rule refuses it, and by the model it fits with what its body holds.
            REFUTED: refused, by a rule, for its memory, or by the function itself.
            UNKNOWN: a rule is open, or only the compiler can say whether it fits.
        rules: The verdict of the rules alone, that of `lp.kernels` on `searching.configurations.QUESTIONS`.
        reason: Why it is refused or unknown, one sentence with the numbers; "" where it is legal.
        question: The property of kernels that is refuted or open, "" for another reason.
        vmem_bytes: The least VMEM of its largest kernel in bytes, whatever the compiler chooses; None = not known.
            Of what was not traced scratch counts nothing: the compiler drops some by what the body does.
        vmem_limit: The VMEM in bytes that this kernel may use.
        vmem_estimate: The compiler's own figure in bytes by the model: windows and scratch.
        vmem_error: The compiler's figure over the estimate, (least, most) where it was measured for this kind of body.
        smem_bytes: Of a kernel of Mosaic GPU, the bytes of shared memory that its largest body allocates, without
            barriers; None elsewhere.
        smem_limit: The shared memory in bytes that it may use; None likewise.
        steps: Programs of all its kernels; of a GPU, places of grid, cluster and threads.
        traffic: Bytes between HBM and VMEM of all its kernels by the model; None where tables or manual DMA decide it.
        time: Picoseconds by the model, without what bodies compute; None likewise.
        traced: Whether the function was traced with these numbers; otherwise it decides as one that was.
    """

    configuration: Mapping[str, int]
    verdict: Verdict
    rules: Verdict
    reason: str = ""
    question: str = ""
    vmem_bytes: int | None = None
    vmem_limit: int | None = None
    vmem_estimate: int | None = None
    vmem_error: tuple[float, float] | None = None
    smem_bytes: int | None = None
    smem_limit: int | None = None
    steps: int | None = None
    traffic: int | None = None
    time: int | None = None
    traced: bool = True

    def __bool__(self) -> bool:
        if self.verdict is Verdict.UNKNOWN:
            raise Undecided(f"{self}; compare .verdict with lp.Verdict.PROVED")
        return self.verdict is Verdict.PROVED

    def as_dict(self) -> LegalityEntry:
        """The same as plain data.

        Returns:
            One JSON object.
        """
        return {
            "configuration": dict(self.configuration),
            "verdict": self.verdict.value,
            "rules": self.rules.value,
            "reason": self.reason,
            "question": self.question,
            "vmem_bytes": self.vmem_bytes,
            "vmem_limit": self.vmem_limit,
            "vmem_estimate": self.vmem_estimate,
            "vmem_error": list(self.vmem_error or ()),
            "smem_bytes": self.smem_bytes,
            "smem_limit": self.smem_limit,
            "steps": self.steps,
            "traffic": self.traffic,
            "time": self.time,
            "traced": self.traced,
        }

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.configuration.items())
        if self.reason:
            return f"{WORDS[self.verdict]} {values}: {shorten(self.reason, 300)}"
        vmem = "" if self.vmem_estimate is None else f"VMEM about {size(self.vmem_estimate)}"
        limit = "" if self.vmem_limit is None else f" of {size(self.vmem_limit)}"
        smem = "" if self.smem_bytes is None else f"SMEM {size(self.smem_bytes)} of {size(self.smem_limit or 0)}"
        steps = "" if self.steps is None else f"{self.steps} steps"
        traffic = "" if self.traffic is None else f"{self.traffic} bytes of HBM"
        said = ", ".join(filter(None, (steps, traffic, vmem + limit, smem)))
        return f"{WORDS[self.verdict]} {values}: {said}"
