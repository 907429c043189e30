"""Claims about programs: each is asked of a record, and says what in the program breaks it.

A bound is proved where the most that may be is within it, refuted where the least that must be is above it, and unknown
in between: in branches, in loops whose trips are unknown, of arrays whose size is not in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from layoutproof.core.amounts import amount, duration, seconds, size
from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError, Undecided, closest, shorten
from layoutproof.core.finding import Finding
from layoutproof.core.message import extended, located
from layoutproof.core.result import Verdict
from layoutproof.hlo.collectives import KINDS as COLLECTIVES
from layoutproof.programs import problems
from layoutproof.programs.record import Often, ProgramValue, Record, Reshard
from layoutproof.programs.spelling import taken
from layoutproof.programs.step_time import MATRIX, step_time

_SHARE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%")
_SHOWN = 3
"""Instructions that one finding names."""


@dataclass(frozen=True, slots=True)
class Summand:
    """One thing that a sum counts. what: its words, with its place.  value: each time, None = unknown.  note: the text
    after the amount."""

    what: str
    value: int | None
    often: Often = Often()
    why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Total:
    """counted: the sum.  worst: its parts, the largest first."""

    counted: Counted
    worst: tuple[Summand, ...]


def total(parts: Iterable[Summand]) -> Total:
    """The sum of parts, by how often each runs.

    >>> total([Summand("a", 8, Often(3)), Summand("b", 2, Often(1, sometimes=True))]).counted
    Counted(least=24, most=26, why='b stands in a branch')
    """
    given = sorted(parts, key=lambda part: -(part.value or 0) * (part.often.times or 1))
    there = tuple(part for part in given if part.value != 0)
    return Total(sum(map(_counted, there), Counted()), there)


def _counted(part: Summand) -> Counted:
    open_ = part.why or part.often.why or problems.PART_WITHOUT_SIZE(part.what)
    if part.value is None:
        return Counted(0, None, open_)
    return part.often.counted(part.value, problems.PART_IN_BRANCH(part.what), open_)


def judge(kind: str, record: Record, options: Mapping[str, object], text: str = "", subject: str = "") -> Finding:
    """The answer to one claim about a program.

    kind: one of `CLAIMS`.  options: those of that claim, as a spec file has them.  text: the compiled program's, for
    `kernels`.  subject: the name of the program.
    Raises LayoutError for options that mean nothing.
    """
    if kind not in CLAIMS:
        raise LayoutError(problems.UNKNOWN_CLAIM(kind, closest(kind, CLAIMS)))
    return CLAIMS[kind](_ProgramQuestion(kind, subject or record.name, record, options, text))


@dataclass(frozen=True, slots=True)
class _ProgramQuestion:
    kind: str
    subject: str
    record: Record
    options: Mapping[str, Any]
    text: str

    def proved(self, **more: Any) -> Finding:
        return Finding(self.kind, self.subject, verdict=Verdict.PROVED, **more)

    def refuted(self, reason: str, **more: Any) -> Finding:
        return Finding(self.kind, self.subject, reason, verdict=Verdict.REFUTED, **more)

    def unknown(self, reason: str, **more: Any) -> Finding:
        return Finding(self.kind, self.subject, reason, verdict=Verdict.UNKNOWN, **more)

    def limit(self, name: str = "at_most") -> int:
        return amount(self.options[name], least=0)

    def number(self, value: int | None, what: str, limit: int, blame: str, fix: str = "", **figures: object) -> Finding:
        """Of one number that the compiler says."""
        if value is None:
            return self.unknown(problems.COMPILER_SILENT(self.record.made.compiler or "the text", what))
        said = {"bytes": value, **{k: v for k, v in figures.items() if v is not None}}
        if value <= limit:
            return self.proved(figures=said)
        return self.refuted(problems.BYTES_ABOVE(what, value, value - limit, limit, blame), figures=said, fix=fix)

    def bounded(self, of: Total, limit: int, what: str, unit: str = "bytes", fix: str = "", **more: Any) -> Finding:
        """Of a sum."""
        found = of.counted
        figures = {unit: _figure(found)}
        figures |= more.pop("figures", {})
        if found.most is not None and found.most <= limit:
            return self.proved(figures=figures, **more)
        named = "; ".join(_part(part, unit) for part in of.worst[:_SHOWN])
        left = len(of.worst) - _SHOWN
        named += f"; and {left} more" if left > 0 else ""
        if found.least > limit:
            reason = problems.AMOUNT_ABOVE(what, found.least, unit, found.least - limit, limit, named)
            return self.refuted(reason, figures=figures, fix=fix, **more)
        return self.unknown(located(what, found.why), figures=figures, **more)


def _part(part: Summand, unit: str) -> str:
    if part.value is None:
        return f"{part.what}, of unknown size"
    each = size(part.value) if unit == "bytes" else f"{part.value} {unit}"
    times = part.often.times
    loops = "" if times == 1 else " an unknown number of times" if times is None else f" {times} times"
    return f"{part.what}, {each}{loops}{part.note}"


def _peak_memory(of: _ProgramQuestion) -> Finding:
    """The memory of a run on one device is within a bound: arguments, results, temporaries, less their shared buffers.

    Why it matters: a program that does not fit fails after the whole compilation, on the device. By the compiler's
    figures of these; `compiler_peak` is its own peak, which on TPU counts VMEM too and is no amount of HBM. The code,
    some MiB, lies beside them. Options: `at_most`. Unknown where the compiler does not say one of them.
    Example: `- {peak_memory: step, at_most: 12GiB}`.
    Incident: teams compile ahead of time in their CI, by scripts of their own, to see this one number:
    https://github.com/apple/axlearn/pull/1036
    Limits: One program on one device at a time; other memory in use on the device is not counted.
    """
    memory = of.record.memory
    figures = {name: getattr(memory, name) for name in ("arguments", "outputs", "aliased", "temporaries")}
    largest = {name: value for name, value in figures.items() if value and name != "aliased"}
    figures |= {"generated_code": memory.generated_code, "compiler_peak": memory.peak}
    blame = ""
    if largest:
        name = max(largest, key=lambda each: largest[each])
        blame = f"; most of it {name.replace('_', ' ')}, {size(largest[name])}"
        blame += f", first {_named(_largest(of.record.parameters))}" if name == "arguments" else ""
    return of.number(memory.taken, "peak memory", of.limit(), blame, _donation(of.record), **figures)


def _argument_memory(of: _ProgramQuestion) -> Finding:
    """All arguments together take at most so many bytes on one device, padding included.

    By the compiler's own figure, else by the layouts of the entry. Refuted with the largest argument. Options:
    `at_most`.
    Example: `- {argument_memory: step, at_most: 4GiB}`.
    Incident: weights that were on every chip in silence, 9 GiB instead of 2.2 on each:
    https://github.com/vllm-project/tpu-inference/issues/3004
    Limits: Arguments alone; temporaries are in `peak_memory`.
    """
    record = of.record
    value = record.memory.arguments if record.memory.arguments is not None else record.entry_bytes
    first = _largest(record.parameters)
    blame = f"; the largest is {_named(first)}" if first else ""
    fix = ""
    if first is not None and record.devices > 1 and first.devices == record.devices:
        fix = f"split {first.name or f'parameter {first.number}'} over the mesh: it is on all {record.devices} devices"
    return of.number(value, "arguments", of.limit(), blame, fix)


def _donation(record: Record) -> str:
    """The parameter whose buffer a result could have, where the program was given none."""
    taken = {value.alias for value in record.results}
    for result in sorted(record.results, key=lambda value: -(value.bytes or 0)):
        if result.alias is None and result.bytes:
            for value in record.parameters:
                if value.shape == result.shape and not value.donated and value.number not in taken:
                    what = result.name or f"result {result.number}"
                    return f"donate {_called(value)} (donate_argnums): {what} can have its {size(result.bytes)}"
    return ""


def _copies(of: _ProgramQuestion) -> Finding:
    """Relayout copies move at most so many bytes, in loops times their trips.

    A copy, transpose or reshape counts where elements move within memory; read and written bytes together. Those of the
    program's parameters and results are apart: `at_most` bounds what is inside, `entry_at_most` these. Unknown where a
    trip count or a size is not in the text.
    Example: `- {copies: step, at_most: 1MiB, entry_at_most: 0 bytes}`.
    Incident: a retile copy around a kernel was found by hand in a review:
    https://github.com/vllm-project/tpu-inference/pull/2551
    Limits: Copies within fusions, and what the compiler hides in memory, are not counted.
    """
    limit = of.limit() if "at_most" in of.options else None
    entry_limit = of.limit("entry_at_most") if "entry_at_most" in of.options else None
    if limit is None and entry_limit is None:
        raise LayoutError(problems.COPIES_WITHOUT_BOUND())
    moving = [each for each in of.record.copies if each.kind in ("relayout", "unknown")]
    sides = {}
    for boundary in (False, True):
        sides[boundary] = total(
            Summand(
                f"{each.place} {each.opcode} {each.source} -> {each.target}"
                + (f" of {each.boundary}" if each.boundary else ""),
                None if each.kind == "unknown" or each.bytes is None else each.bytes * each.count,
                each.often,
                f"{each.place}: {each.reason or each.often.why}" if each.reason or each.often.why else "",
            )
            for each in moving
            if bool(each.boundary) == boundary
        )
    fix = "give the layout that the program wants: jax.jit(.., in_shardings=Format(Layout.AUTO))"
    inside, entry = sides[False], sides[True]
    answers = []
    if limit is not None:
        scope = ""
        if entry_limit is None and entry.worst:
            scope = f"without the copies of parameters and results, {_words(entry.counted)}: entry_at_most bounds them"
        answers.append(
            of.bounded(inside, limit, "relayout copies", figures={"entry": _figure(entry.counted)}, scope=scope)
        )
    if entry_limit is not None:
        what, figures = "copies of parameters and results", {"inside": _figure(inside.counted)}
        answers.append(of.bounded(entry, entry_limit, what, fix=fix, figures=figures))
    return min(answers, key=lambda answer: answer.verdict)


def _collectives(of: _ProgramQuestion) -> Finding:
    """Collectives take at most so many bytes on one device and step, in loops times their trips.

    Of each the larger side counts: the result of an all-gather, the operand of a reduce-scatter. Options: `at_most`;
    `kind`, one opcode or several; `axes`, only those along one of these axes of the mesh. Unknown in a branch, where a
    trip count is unknown, where groups are not whole axes of a known mesh, and where a kernel talks to devices itself.
    Where the operations that read what is sent lack less than is sent, both numbers are said.
    Example: `- {collectives: step, kind: all-gather, axes: [data], at_most: 0 bytes}`.
    Incident: an all-to-all of 538 MB in each step: https://github.com/vllm-project/tpu-inference/pull/3499
    Limits: Bytes, not time; overlap with computation is unknown.
    """
    kinds = _listed(of.options.get("kind", ()))
    axes = _listed(of.options.get("axes", ()))
    for kind in kinds:
        if kind not in COLLECTIVES:
            raise LayoutError(problems.UNKNOWN_COLLECTIVE(kind, closest(kind, COLLECTIVES)))
    for axis in axes:
        if of.record.made.mesh and axis not in of.record.made.mesh:
            mesh = ", ".join(of.record.made.mesh)
            raise LayoutError(problems.UNKNOWN_AXIS(axis, mesh))
    parts, unplaced = [], []
    spare = {name: each for each in of.record.reshards if each.needed is not None for name in each.collectives}
    for each in of.record.collectives:
        if kinds and each.kind not in kinds:
            continue
        over = "axes unknown" if each.axes is None else f"over {', '.join(each.axes) or 'no axis'}"
        what = f"{each.kind} {over}, {each.place}"
        if axes and each.axes is None and each.bytes != 0:
            unplaced.append(what)
        elif not axes or set(axes) & set(each.axes or ()):
            why, note = f"{what}: {each.often.why}" if each.often.why else "", _spared(spare, each.place.instruction)
            parts.append(Summand(what, each.bytes, each.often, why, note))
    parts += [Summand(what, None, why=problems.NOT_ALONG_AXES(what)) for what in unplaced]
    parts += [
        Summand(f"kernel {each.name}, {each.place}", None, each.often, problems.KERNEL_TALKS(each.place))
        for each in of.record.kernels
        if each.communicates and not kinds
    ]
    what = " and ".join(filter(None, (", ".join(kinds) or "collectives", f"along {', '.join(axes)}" if axes else "")))
    return of.bounded(total(parts), of.limit(), what.replace(" and along", " along"))


def _spared(reshards: Mapping[str, Reshard], name: str) -> str:
    """A sufficient replacement for a collective and for those that move its result on."""
    found = reshards.get(name)
    if found is None:
        return ""
    many = f" of {len(found.collectives)} collectives" if len(found.collectives) > 1 else ""
    return f" ({found.needed} bytes would do where a device receives {found.received}{many})"


def _program_padding(of: _ProgramQuestion) -> Finding:
    """At most such a share of all arrays of the program holds no element.

    Each array that takes memory counts once, in whichever memory. Options: `at_most`, a share. Refuted with the layout
    that wastes most, and what would waste less.
    Example: `- {program_padding: step, at_most: 5%}`.
    Incident: 32 GiB for 1 GiB, because a dimension of 4 was the minor one:
    https://github.com/DifferentiableUniverseInitiative/flowpm/issues/27
    Limits: All arrays of the program together; `peak_memory` says what is alive at once.
    """
    found = _SHARE.fullmatch(str(of.options["at_most"]).strip())
    if found is None:
        raise LayoutError(problems.SHARE_FORM(shorten(repr(of.options["at_most"]), 40)))
    record = of.record
    waste = record.padded - record.unpadded
    figures = {"bytes": record.padded, "unpadded_bytes": record.unpadded, "padding_bytes": waste}
    whole, _, part = found[1].partition(".")
    scale = 10 ** len(part)
    over = waste * 100 * scale > record.padded * int(whole + part)
    if not record.padded:
        return of.unknown(problems.NO_MEMORY())
    if over and record.padding:
        worst = record.padding[0]
        share = 100 * waste / record.padded
        reason = problems.PADDING(
            share,
            record.padded,
            worst.count,
            worst.shape,
            size(worst.bytes - worst.unpadded),
            size(worst.bytes),
            worst.place,
        )
        return of.refuted(reason, figures=figures, fix=_cheaper(worst.shape))
    if record.unknown:
        return of.unknown(problems.ARRAYS_WITHOUT_SIZE(len(record.unknown), record.unknown[0]), figures=figures)
    return of.proved(figures=figures)


def _cheaper(shape: str) -> str:
    from layoutproof.hlo.fixes import fix
    from layoutproof.hlo.shapes import read_array

    layout = read_array(shape).layout
    found = None if layout is None else fix(layout)
    return "" if found is None or not (found.layout or found.merged) else str(found)


def _layout(of: _ProgramQuestion) -> Finding:
    """A parameter or a result has a layout.

    Options: `of`, its name as the program has it, or `parameter 0`, `result 0`; `is`, the shape on one device with its
    layout. Another text for the same map is proved to be that.
    Example: `- {layout: step, of: "params['w']", is: "bf16[256,256]{1,0:T(8,128)(2,1)}"}`.
    Incident: a layout changed in silence between two versions of jaxlib, 1.5 ms became 8.5:
    https://github.com/openxla/xla/issues/47203
    Limits: By the compiler version of the record.
    """
    from layoutproof.layouts import xla
    from layoutproof.questions.cached import ask

    value = _one(of.record, of.options["of"])
    wanted = xla.read(str(of.options["is"]))
    found = xla.read(value.shape)
    if found == wanted:
        return of.proved(decided_by="the same text")
    reason = problems.SHAPE_DIFFERS(_called(value), value.shape, wanted)
    try:
        same = ask("same_map", str(found), str(wanted)).verdict
    except (LayoutError, Undecided):
        return of.refuted(reason)
    spaces = getattr(found, "memory_space", 0) == getattr(wanted, "memory_space", 0)
    if same is Verdict.PROVED and spaces:
        return of.proved(decided_by="same_map")
    return of.unknown(reason) if same is Verdict.UNKNOWN else of.refuted(reason)


def _donated(of: _ProgramQuestion) -> Finding:
    """Results take the buffers of these parameters.

    Options: `of`, names; `params*` is all that start so. Refuted with the bytes that stand beside the results.
    Example: `- {donated: step, of: ["state*"]}`.
    Incident: a reshape after which a buffer is no longer donated: https://github.com/jax-ml/jax/issues/11036
    Limits: That the compiler aliases the buffers, not that the caller lets go of the array.
    """
    given = [value for name in _listed(of.options["of"]) for value in _some(of.record.parameters, name)]
    lost = [value for value in given if not value.donated]
    open_ = [value for value in given if value.donated and not value.donated.startswith("result")]
    if lost:
        named = ", ".join(_named(value) for value in lost[:_SHOWN])
        wasted = sum(value.bytes or 0 for value in lost)
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        reason = problems.BUFFERS_KEPT(named, more, "s" if len(lost) == 1 else "", size(wasted))
        fix = "jax.jit(.., donate_argnums=..); JAX donates only to a result of the same shape and sharding"
        return of.refuted(reason, figures={"bytes": wasted}, fix=fix)
    if open_:
        return of.unknown(problems.BUFFER_NOT_TAKEN(_called(open_[0])))
    return of.proved(figures={"bytes": sum(value.bytes or 0 for value in given)})


def _spelling(of: _ProgramQuestion) -> Finding:
    """A call finds the compiled program: shardings are spelled so that JAX compiles nothing again.

    Options: `of`, a parameter, and `as`, the sharding that a caller passes, `P('data', None)`, on the program's own
    mesh where it names none. Without them: each parameter whose buffer a result takes, against that result, which
    one step hands to the next. Proved where nothing is compiled, which was measured (jax 0.10.2, 0.12.0.1);
    a spelling that only makes the first call slow is named. Unknown for another jax, and where the record does not say
    how JAX spells a sharding.
    Example: `- {spelling: step, of: cache, as: "P('data', None)"}`.
    Incident: `P('data')` and `P('data', None)` compiled the program twice while it served:
    https://github.com/vllm-project/tpu-inference/pull/2225
    Limits: What JAX compares of its keys, by the versions that were measured.
    """
    given = of.options.get("of"), of.options.get("as")
    if (given[0] is None) != (given[1] is None):
        raise LayoutError(problems.OF_AND_AS())
    record, pairs = of.record, []
    if given[0] is not None:
        for value in _some(record.parameters, str(given[0])):
            written = str(given[1])
            _, at, mesh = value.spec.partition(" on ")
            bare = not written.lstrip().startswith("NamedSharding") and " on " not in written
            pairs.append((_called(value), f"{written} on {mesh}" if bare and at else written, value.spec))
    else:
        by_number = {value.number: value for value in record.parameters}
        for result in record.results:
            if result.alias is not None and result.alias in by_number:
                value = by_number[result.alias]
                named = f"{result.name or f'result {result.number}'} for {_called(value)}"
                pairs.append((named, result.spec, value.spec))
        if not pairs:
            return of.unknown(problems.NO_RESULT_IN_PLACE())
    slow, open_ = [], ""
    for name, passed, wanted in pairs:
        if not wanted or not passed:
            open_ = open_ or problems.SPELLING_UNRECORDED(name)
            continue
        verdict, why = taken(passed, wanted, record.made.jax)
        words = problems.SPELLED_OTHERWISE(name, passed.partition(" on ")[0], wanted.partition(" on ")[0], why)
        if verdict is Verdict.REFUTED:
            return of.refuted(words, fix=f"pass it as {wanted.partition(' on ')[0]}")
        open_ = open_ or (words if verdict is Verdict.UNKNOWN else "")
        slow += [words] if why else []
    return of.unknown(open_) if open_ else of.proved(scope="; ".join(slow[:_SHOWN]))


def _replicated(of: _ProgramQuestion) -> Finding:
    """No parameter of more than so many bytes is on every device of the program.

    Options: `above`. Unknown on one device, and where the text does not say the sharding of a parameter of that size.
    Example: `- {replicated: step, above: 1MiB}`.
    Incident: weights that were on every chip in silence, 9 GiB instead of 2.2 on each:
    https://github.com/vllm-project/tpu-inference/issues/3004
    Limits: Parameters; temporaries that are replicated show in `peak_memory`.
    """
    record, above = of.record, of.limit("above")
    if record.devices == 1:
        return of.unknown(problems.ONE_DEVICE())
    large = [value for value in record.parameters if value.bytes is None or value.bytes > above]
    bad = [value for value in large if value.devices == record.devices and value.bytes is not None]
    if bad:
        named = "; ".join(_named(value) for value in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        total_ = sum(value.bytes or 0 for value in bad)
        reason = problems.ON_ALL_DEVICES(record.devices, named, more)
        fix = f"split {_called(bad[0])} over an axis of the mesh, e.g. P({next(iter(record.made.mesh), 'axis')!r})"
        return of.refuted(reason, figures={"bytes": total_, "parameters": len(bad)}, fix=fix)
    open_ = [value for value in large if value.devices is None or value.bytes is None]
    if open_:
        what = "its sharding" if open_[0].devices is None else "its size"
        return of.unknown(problems.NOT_IN_TEXT(_called(open_[0]), what))
    return of.proved(figures={"parameters": 0})


def _vmem(of: _ProgramQuestion) -> Finding:
    """Each Pallas kernel takes at most so many bytes of VMEM, as its compiler counted them.

    Options: `at_most`; `of`, the kernel of one name. Unknown where no kernel is in the program.
    Example: `- {vmem: step, at_most: 16MiB}`.
    Incident: a kernel needed 65.05 M of 64 M of VMEM: https://github.com/jax-ml/jax/issues/38988
    Limits: By the compiler version of the record; nothing was run.
    """
    wanted, limit = of.options.get("of"), of.limit()
    kernels = [each for each in of.record.kernels if wanted is None or each.name == wanted]
    if not kernels:
        have = ", ".join(dict.fromkeys(each.name for each in of.record.kernels)) or "none"
        what = "no Pallas kernel" if wanted is None else f"no kernel {wanted!r}"
        return of.unknown(problems.KERNEL_MISSING(what, have))
    over = [each for each in kernels if each.vmem is not None and each.vmem > limit]
    figures = {each.name: each.vmem for each in kernels if each.vmem is not None}
    if over:
        worst = max(over, key=lambda each: each.vmem or 0)
        reason = f"{worst.name} takes {worst.vmem} bytes of VMEM, {(worst.vmem or 0) - limit} more than {limit}: "
        return of.refuted(
            extended(reason, str(worst.place)), figures=figures, fix="smaller blocks, or fewer buffers of one"
        )
    open_ = [each for each in kernels if each.vmem is None]
    if open_:
        return of.unknown(problems.VMEM_NOT_IN_TEXT(open_[0].place), figures=figures)
    return of.proved(figures=figures)


def _kernels(of: _ProgramQuestion) -> Finding:
    """The program's own Pallas calls are proved: grids, blocks and index maps, read from the compiled text.

    Their bodies are not looked at: `layoutproof kernels` traces the function and does. Unknown where there is none.
    Example: `- {kernels: step}`.
    Incident: an element offset returned as block index, NaN in silence: https://github.com/jax-ml/jax/issues/31395
    Limits: As of `layoutproof kernels` of a compiled text: parts of a body that cannot be read are unknown.
    """
    from layoutproof.hlo import kernels
    from layoutproof.hlotext.lines import read_hlo
    from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET

    if not of.record.kernels:
        return of.unknown(problems.NO_KERNEL())
    if not of.text:
        return of.unknown(problems.RECORD_WITHOUT_KERNELS())
    target = of.record.made.target
    found = [
        finding
        for module in read_hlo(of.text.splitlines(keepends=True))
        for computation in module.computations
        for each in computation.instructions
        if each.opcode == "custom-call" and each.target == TARGET
        for finding in kernels.check(each, "", target if target and target != "cpu" else None)
    ]
    scope = "grids, blocks and index maps; the bodies are not looked at"
    worst = min(found, key=lambda finding: finding.verdict, default=None)
    if worst is None:
        return of.unknown(problems.NO_KERNEL_READ())
    if worst.verdict is Verdict.PROVED:
        return of.proved(figures={"kernels": len(found)}, scope=scope)
    why = problems.OF_KERNEL(worst.subject, worst.question, worst.reason)
    return Finding(of.kind, of.subject, why, verdict=worst.verdict, fix=worst.fix, figures=worst.figures, scope=scope)


def _estimated_cycles(of: _ProgramQuestion) -> Finding:
    """The priced operations take at most so many cycles by the compiler's estimate, in loops times their trips.

    Its own estimate, as the compiled text carries it; kernels and collectives have no price. It is no time, and other
    versions of the compiler estimate otherwise. Options: `at_most`.
    Example: `- {estimated_cycles: step, at_most: 200000}`.
    Incident: a newer version of the compiler made programs slower, and the update was taken back:
    https://github.com/jax-ml/jax/issues/30627
    Limits: The compiler's own estimate, comparable within one version of it; no time was measured.
    """
    record, limit = of.record, of.options["at_most"]
    if type(limit) is not int or limit < 0:
        raise LayoutError(problems.CYCLES_FORM(shorten(repr(limit), 40)))
    if not record.priced:
        return of.unknown(problems.NOTHING_PRICED(record.made.compiler or "the text"))
    if record.cycles is not None and record.cycles <= limit and not any(e.often.sometimes for e in record.operations):
        return of.proved(figures={"cycles": record.cycles, "operations": record.priced}, scope=_PRICED)
    found = total(Summand(f"{e.place} {e.opcode}", e.cycles, e.often) for e in record.operations)
    sum_ = found.counted
    if record.priced > len(record.operations) and sum_.least <= limit:
        why = sum_.why or problems.PART_UNPRICED()
        found = replace(found, counted=Counted(sum_.least, record.cycles, why))
    return of.bounded(found, limit, "estimated cycles", "cycles", scope=_PRICED)


def _flops(of: _ProgramQuestion) -> Finding:
    """One run does at most so many flops on one device: products, convolutions and arithmetic, in loops by their trips.

    Counted from the compiled text and from the source of its kernels, not by the compiler's own total, which counts the
    body of a loop once. Refuted with the lines that do most. Options: `at_most`, a number of flops.
    Example: `- {flops: step, at_most: 1000000000000}`.
    Incident: none is known to us.
    Limits: Unknown where a loop's trips, or the work of a custom call, are not known.
    """
    record, limit = of.record, of.options["at_most"]
    if type(limit) is not int or limit < 0:
        raise LayoutError(problems.FLOPS_FORM(shorten(repr(limit), 40)))
    if record.work is None:
        return of.unknown(problems.NO_WORK())
    worst = tuple(Summand(f"{p.source or 'no line'}", p.flops, p.often) for p in record.work.places if p.flops)
    return of.bounded(Total(record.work.flops, worst), limit, "work", "flops")


def _step_time_bound(of: _ProgramQuestion) -> Finding:
    """A step takes at least so long, by what it computes and moves, and that is within a bound.

    The least time is the largest of several: flops of products at the matrix unit's rate, bytes of elements that it
    reads and writes at the rate of HBM, and what its collectives send between chips at the rate of all links along the
    directions of the torus that a group of devices spans. Refuted where even that is too long, with the term that
    binds; proved where no term can be longer. Options: `at_most`, a time such as 20 ms.
    Example: `- {step_time_bound: step, at_most: 20 ms}`.
    Incident: none is known to us.
    Limits: A bound and no promise of speed: a step that keeps it may take any time longer. Vector units, latencies
    and waits are not in it; nor is the interconnect of a record that does not say where its devices are.
    """
    record, limit = of.record, duration(of.options["at_most"])
    if record.made.target in ("", "cpu"):
        return of.unknown(problems.NO_WORK() if record.work is None else problems.NO_CHIP())
    found = step_time(record)
    if found is None:
        return of.unknown(problems.NO_WORK())
    bound, least = found.bound, found.terms[MATRIX].least
    figures: dict[str, object] = {"least_ps": bound.least, "most_ps": bound.most, "binds": found.binds}
    figures |= {f"{name.replace(' ', '_')}_ps": term.least for name, term in found.terms.items()}
    if bound.least:
        # flops at their own rate, of the time that the step takes at least
        figures["mfu_at_best"] = f"{100 * least // bound.least} %"
    scope = "; ".join(
        filter(None, (f"a lower bound by the rates of {found.chip}, no promise of speed", found.left_out))
    )
    if bound.least > limit:
        over = f"at least {seconds(bound.least)} on {found.chip}, {seconds(bound.least - limit)} more than"
        reason = f"a step takes {over} {of.options['at_most']}: {found.words()}"
        return of.refuted(reason, figures=figures, scope=scope)
    if bound.most is None or bound.most > limit:
        return of.unknown(bound.why or problems.RUNS_UNKNOWN(), figures=figures, scope=scope)
    return of.proved(figures=figures, scope=scope)


_PRICED = "the compiler's own estimate, of the operations that it prices; kernels and collectives have none"


CLAIMS: Mapping[str, Callable[[_ProgramQuestion], Finding]] = MappingProxyType(
    {
        "peak_memory": _peak_memory,
        "argument_memory": _argument_memory,
        "copies": _copies,
        "collectives": _collectives,
        "program_padding": _program_padding,
        "layout": _layout,
        "donated": _donated,
        "spelling": _spelling,
        "replicated": _replicated,
        "vmem": _vmem,
        "kernels": _kernels,
        "estimated_cycles": _estimated_cycles,
        "flops": _flops,
        "step_time_bound": _step_time_bound,
    }
)
"""The claims on a program, by the key of the check; the docstring of each is its page (`explain NAME`)."""


def _figure(found: Counted) -> object:
    return found.least if found.most == found.least else {"least": found.least, "most": found.most}


def _words(found: Counted) -> str:
    return "an unknown number of bytes" if found.most is None else f"{found.most} bytes"


def _listed(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _largest(values: Sequence[ProgramValue]) -> ProgramValue | None:
    return max(values, key=lambda value: value.bytes or 0, default=None)


def _called(value: ProgramValue) -> str:
    return value.name or f"number {value.number}"


def _named(value: ProgramValue | None) -> str:
    return "" if value is None else f"{_called(value)} {value.shape}, {size(value.bytes or 0)}"


def _one(record: Record, name: str) -> ProgramValue:
    """A parameter or result by name, or by `parameter 0`, `result 0`."""
    word, _, number = name.partition(" ")
    sides = {"parameter": record.parameters, "result": record.results}
    if word in sides and number.isdecimal() and int(number) < len(sides[word]):
        return sides[word][int(number)]
    found = [value for value in (*record.parameters, *record.results) if value.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise LayoutError(problems.SEVERAL_VALUES(name, len(found)))
    known = [value.name for value in (*record.parameters, *record.results) if value.name]
    raise _no_such(name, known)


def _some(values: Sequence[ProgramValue], name: str) -> list[ProgramValue]:
    """Parameters by name; with a `*` at the end, all that start so."""
    word, _, number = name.partition(" ")
    if word == "parameter" and number.isdecimal() and int(number) < len(values):
        return [values[int(number)]]
    ends = name.removesuffix("*")
    found = [value for value in values if (value.name.startswith(ends) if name.endswith("*") else value.name == name)]
    if not found:
        raise _no_such(name, [value.name for value in values if value.name])
    return found


def _no_such(name: str, known: Sequence[str]) -> LayoutError:
    shown = closest(name, known) or (f"; there are {shorten(', '.join(known), 200)}" if known else "; none has a name")
    return LayoutError(problems.UNKNOWN_VALUE(name, shown))
