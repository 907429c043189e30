"""The classes of the gate's findings, each with what it means; reports, policy and `explain` read them here."""

from __future__ import annotations

KINDS = {
    "respelled": "The text differs and the map is proved to be the same.",
    "same_bytes": "The shape or type is another, over the same bytes: proved to be a bitcast.",
    "moved": "An element is stored elsewhere.",
    "grew": "More bytes are allotted.",
    "shrank": "Fewer bytes are allotted.",
    "reshaped": "The shape is another, and its elements are not those of the old one.",
    "resharded": "An element is on another device.",
    "lost": "A claim that was proved no longer is.",
    "weakened": "A claim that was proved is sampled now: it holds at random points, and nothing proves it.",
    "gained": "A claim that was not proved now is.",
    "refuted": "A claim that is new or changed does not hold, or a kernel breaks a rule that it kept before.",
    "loosened": "A claim demands less: a wider bound, fewer sizes, another expectation, fewer figures.",
    "tightened": "A claim or a rule of the gate demands more.",
    "added": "It was not there before.",
    "removed": "A layout, a claim, a kernel or a program was removed and is no longer checked.",
    "memory_space": "The layout is the same, the memory space is another: slower, or one of limited size.",
    "faster_memory": "The layout is the same, the memory is the chip's fast one instead of its HBM.",
    "abi": "A parameter or result of the program is laid out differently.",
    "relaid_parameter": "The program copies a parameter to another layout at every call.",
    "new_copy": "A copy that changes the layout was not there before.",
    "vanished_copy": "A copy that changed the layout is gone.",
    "bitcast_refuted": "A bitcast does not implement the reshape or transpose that it stands for.",
    "reordered": "A new bitcast keeps every byte, and is no reshape with transposes of whole dimensions.",
    "contradiction": "The new dump gives one buffer two layouts: it was edited, or mixed from two.",
    "devices": "The program runs on another number of partitions or replicas.",
    "unscheduled": "The dump is no longer scheduled: its layouts may not be those that run.",
    "lost_donation": "The buffer of an argument went to a result, and no longer does, or goes to another one.",
    "new_donation": "The buffer of an argument goes to a result: the caller's array is invalid after the call.",
    "new_collective": "Devices exchange data that they did not exchange before.",
    "grown_collective": "A collective moves more bytes, or stands inside of more loops.",
    "shrunk_collective": "A collective moves fewer bytes.",
    "regrouped": "A collective joins other devices, works along another dimension, or reduces in another way.",
    "exchanged_collective": "A collective replaces others that moved at least as many bytes between devices.",
    "vanished_collective": "A collective is gone, and the shapes around it or another one show that it is not needed.",
    "lost_exchange": "A reduction or exchange between devices is gone, and no shape shows whether it was needed.",
    "custom_call": "A custom call has another target, other operands, or other aliases.",
    "vanished_call": "A kernel, or another custom call, is gone from the program.",
    "kernel_body": "The body of a kernel changed; both are judged, and what they compute is not compared.",
    "reshaped_result": "An instruction with the same operands has other dimensions or another element type.",
    "operation": "An instruction with the same operands computes something else, or along other dimensions.",
    "peak_memory": "A run holds more memory of a device: arguments, results and temporaries, less what they share.",
    "temporaries": "The program takes more memory for what is neither argument nor result.",
    "replicated": "More devices hold each element of a parameter or result.",
    "vmem": "A kernel takes more VMEM, by its compiler's figures.",
    "estimated_cycles": "The compiler's own estimate of cycles, of the program or of one of its kernels, is higher.",
    "operands": "An instruction takes its operands in another order, or another element of a tuple.",
    "computation_differs": "An instruction computes something else: another value as operand, a step less or more.",
    "same_function": "The program is written otherwise, and no output differs: proved, or sampled at random points.",
    "other_function": "An output of the program differs from what it was, on inputs on which float64 shows it.",
    "function_unknown": "The program is another, and whether it computes the same is unknown.",
    "program": "Another program is compiled under a name: its function, its arguments, their shardings, or its text.",
    "constant": "A constant of the program has another value.",
    "kernel": "Something of a kernel changed besides its blocks: semantics, scratch memory, aliases, grid.",
    "policy": "The rules of the gate itself would let more through; the old ones judge until they are approved.",
    "lock": "The new layoutproof.lock does not say what is here; the next change would be compared with it.",
    "approval_added": "The change approves itself: who, what, until. It counts once it is in the old state, or with "
    "--accept-approvals.",
    "unknown": "The answer is unknown: no engine decides it within its budget, or part of it is not modelled.",
    "error": "The input is wrong.",
}
"""Every class and what it means."""

_ABOUT: tuple[tuple[str, str], ...] = (
    (
        "respelled same_bytes",
        """Why it matters: most changes of a layout's text change nothing; a gate that stopped them would be
switched off.
Incident: layouts were compared as text, and one in which only dimensions of one element changed places was refused:
https://github.com/jax-ml/jax/issues/25066
Fix: nothing to do.
Limits: the bytes are the same; how fast they are read is not asked.""",
    ),
    (
        "moved reshaped",
        """Why it matters: whatever reads these bytes by the old layout, a kernel, a saved array, another program,
gets other elements.
Incident: a layout changed in silence between two versions of jaxlib, and 1.5 ms became 8.5:
https://github.com/openxla/xla/issues/47203
Fix: change it back, or change all readers with it and approve the finding (`--approve`).
Limits: who reads the array is not known from its layout.""",
    ),
    (
        "abi relaid_parameter new_copy vanished_copy",
        """Why it matters: a copy that only changes the layout reads and writes the whole array at each call, and
nothing in the source says so.
Incident: parameters were copied in every step, because their last dimension was no multiple of 128:
https://github.com/vllm-project/tpu-inference/pull/3366
Fix: pass the array in the layout that the program wants; `layoutproof hlo --try` compiles the candidates.
Limits: by the compiled text; overlap with computation is unknown.""",
    ),
    (
        "grew shrank memory_space faster_memory peak_memory temporaries vmem",
        """Why it matters: memory decides whether a program starts at all, and padding takes it in silence.
Incident: 32 GiB for 1 GiB, because a dimension of 4 was the minor one:
https://github.com/DifferentiableUniverseInitiative/flowpm/issues/27
Fix: `layoutproof why SHAPE` computes what a shape costs and what would cost less.
Limits: exact figures of the layout or of the compiler that is named; nothing was run.""",
    ),
    (
        "resharded replicated new_collective grown_collective shrunk_collective regrouped exchanged_collective "
        "vanished_collective devices",
        """Why it matters: who holds what decides what devices send one another in each step.
Incident: an all-to-all of 538 MB in each step: https://github.com/vllm-project/tpu-inference/pull/3499; weights on
every chip in silence: https://github.com/vllm-project/tpu-inference/issues/3004
Fix: state the sharding of what is exchanged, or change it back; docs/programs.md shows how to find what is sent and
why.
Limits: bytes, not time.""",
    ),
    (
        "lost_exchange",
        """Why it matters: without its sum over devices each device keeps a partial sum.
Incident: wrong results from a sharding and a sum over devices:
https://github.com/vllm-project/tpu-inference/issues/2248
Fix: show that it is not needed (the input is replicated, or the sum is made elsewhere), and approve it.
Limits: shapes only; values are not computed.""",
    ),
    (
        "bitcast_refuted reordered contradiction unscheduled",
        """Why it matters: a bitcast that moves elements is a miscompilation, and a dump with two layouts for one
buffer is no program at all.
Incident: XLA made a bitcast of a copy where a dimension has one element, and computed wrong numbers:
https://github.com/openxla/xla/pull/18441
Fix: dump the program again, whole and from one compilation; if it stays, report it to the compiler.
Limits: by the text of the dump.""",
    ),
    (
        "lost_donation new_donation",
        """Why it matters: without the donation the program holds old and new at once; with a new one the caller's
array is gone after the call.
Incident: a reshape after which a buffer is no longer donated: https://github.com/jax-ml/jax/issues/11036
Fix: donate the argument, with the layout and the shape of the result.
Limits: the callers' uses of the array are unknown.""",
    ),
    (
        "estimated_cycles",
        """Why it matters: it is what a compiler says of speed where there is no chip.
Incident: a newer version of the compiler made programs slower, and the update was taken back:
https://github.com/jax-ml/jax/issues/30627
Fix: look at the copies, collectives and kernels of the same report first.
Limits: comparable within one version of the compiler; no time was measured.""",
    ),
    (
        "custom_call vanished_call kernel_body kernel program",
        """Why it matters: the program computes something else, or computes it otherwise; no layout explains the
difference.
Incident: none is known to us that a gate would have stopped.
Fix: if it is meant, approve it; if it is not, look at the line that the finding names.
Limits: values are not compared, only that the program changed is known; both bodies of a kernel are judged.""",
    ),
    (
        "computation_differs operation operands constant reshaped_result",
        """Why it matters: the program computes something else; a sign, an axis or a value from before a step changes no
shape, no memory and no time.
Incident: none is known to us that a gate would have stopped.
Fix: if it is meant, approve it; if it is not, look at the line that the finding names, in both texts.
Limits: two programs compute the same where each instruction does the same to the same; names, layouts, copies, fusions
and the order of operands that commute do not count. Two compiled forms of one formula may be two programs:
`a * (b * c)` beside `(a * b) * c` is known, distribution is not, and a transpose elsewhere is unknown.""",
    ),
    (
        "same_function other_function function_unknown",
        """Why it matters: a refactoring must compute what was computed before; a sign, a stale moment or a scale
changes no shape, no memory and no time, and a test with a tolerance may miss it.
Incident: of 523 fixes in five public stacks from May to November 2026, 26 repair wrong numbers and 45 shardings; that
a gate would have stopped one of them, none is known to us.
Fix: look at the line where the two part. Where the change is meant, approve it; where it is a refactoring, ask for
it: `layoutproof gate --against main --same-function`, or the claim `same_function: step`.
Limits: over the reals, at the sizes that are printed; rounding is not asked. Both sources have to be at hand: that of
the base is traced with --same-function and with --compile-base only. Of two dumps the texts are evaluated, where they
differ in what they compute. docs/same.md says what is not modelled.""",
    ),
    (
        "lost refuted unknown error",
        """Why it matters: a property that held before is refuted or unknown now.
Incident: none is known to us that a gate would have stopped.
Fix: that of the question which the finding names (`layoutproof explain QUESTION`).
Limits: only claims and stated kernels are checked.""",
    ),
    (
        "loosened removed policy lock approval_added",
        """Why it matters: a change that weakens the check which it would fail is the easiest way to a green build.
Incident: none is known to us; it is the way by which any gate can be passed.
Fix: keep the claim, or have another person approve its removal.
Limits: claims, rules and approvals in files; who may merge is up to the repository.""",
    ),
    (
        "weakened",
        """Why it matters: a fact about every element, or all sizes, is now known only at some points or sizes.
Incident: none is known to us.
Fix: `layoutproof same` names the operations that relations cannot read; or approve it.
Limits: claims about values only; one that is unknown or refuted now is lost.""",
    ),
    (
        "tightened gained added",
        """Why it matters: more is demanded or proved than before; it is shown for information.
Incident: none is known to us.
Fix: nothing to do.
Limits: only claims are compared.""",
    ),
)


def pages() -> dict[str, str]:
    """The page of each class: its meaning, why it matters, an incident, the fix, the limits.

    >>> pages()["moved"].splitlines()[0]
    'An element is stored elsewhere.'
    """
    about = {kind: text for kinds, text in _ABOUT for kind in kinds.split()}
    return {kind: f"{meaning}\n\n{about[kind]}" for kind, meaning in KINDS.items()}
