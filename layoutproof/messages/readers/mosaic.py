"""What the TPU kernel compiler (Mosaic) and the Pallas lowering refuse: the rule, the numbers, the multiple that does.

Each message is one entry of `_KINDS`: a pattern, and a function from what it matched to the cause and what to write
instead. Sources: messages of libtpu 0.0.42.1 and 0.0.52 on v5e (which sizes compile was tried, 2026-11), and threads in
`tests/cases/messages`. What vectors a generation has, and what is tried, is said with its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from layoutproof.core.errors import shorten
from layoutproof.hardware.tpu_tiles import LANES, SUBLANES
from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import AFTER, Kind, Told, explained, next_multiple
from layoutproof.messages.pasted import PastedLine

_TYPE = r"(?:vector|memref)<((?:\d+x)++)([a-zA-Z]\w*+)"
_CAST = re.compile(rf"\({_TYPE}[^()]*+\) -> {_TYPE}")
_OPERATION = re.compile(r'"(\w+\.\w+)"\(')
_LOCATION = re.compile(r'"([^"\s]+\.py)":(\d+)')
_OTHER = re.compile(
    r"Mosaic failed to compile TPU kernel: *\S|The MLIR operation involved|'[a-z]\w*\.[\w.]+' op \S|Not implemented: \S"
)
"""What begins an error of Mosaic, or of the passes that it runs; a line after it names the operation."""
_OPERATION_FOLLOWS = re.compile(r"^The MLIR operation involved")
_NOT_KNOWN = "this error of Mosaic is not known here; layoutproof kernels --compile asks today's compiler of the kernel"
_ONLY_THE_OPERATION = "what is wrong stands before the operation: paste the line 'Mosaic failed to compile ..' too"


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of kernels in a text, each once; one that is not known here, where none is.

    lines: of the text.  target: not looked at.
    """
    known = tuple(explained("Mosaic", _KINDS, lines, _notes))
    yield from known or _not_known(lines)


def _not_known(lines: Sequence[PastedLine]) -> Iterator[Explanation]:
    """The first error of Mosaic in a text that no kind explains."""
    for at, line in enumerate(lines):
        found = _OTHER.search(line.text)
        if found is None:
            continue
        block = "\n".join(each.text for each in lines[at : at + AFTER])
        said, why = line.text[found.start() :], _NOT_KNOWN
        if _OPERATION_FOLLOWS.search(said):
            # the sentence that says what is wrong stands above the operation, and may have a line of its own
            above = [each.text.strip() for each in lines[max(0, at - 4) : at] if each.text.strip()]
            said, why = (above[-1], _NOT_KNOWN) if above else (said, _ONLY_THE_OPERATION)
        yield Explanation("Mosaic", line.number, shorten(said.strip(), 160), "", why, notes=_notes(block))
        return


def _notes(block: str) -> tuple[str, ...]:
    """The operation and the first line of the user's own code that the message names."""
    operation = _OPERATION.search(block)
    own = [m for m in _LOCATION.finditer(block) if "site-packages" not in m[1] and "dist-packages" not in m[1]]
    notes = [f"operation {operation[1]}"] if operation else []
    return (*notes, *[f"at {where[1]}:{where[2]}" for where in own[:1]])


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.rstrip("x").split("x"))


def _shown(dims: Sequence[int]) -> str:
    return "x".join(map(str, dims))


def _shape_cast(match: re.Match[str], block: str) -> Told:
    cast = _CAST.search(block)
    if cast is None:
        return Told("", reason="the message names no shapes; paste the lines after it, 'The MLIR operation involved'")
    source, result = _dims(cast[1]), _dims(cast[3])
    rule = (
        f"a vector lies in registers of {SUBLANES} rows and {LANES} lanes by its last two dimensions, so a reshape has "
        f"to keep the last one, or both have to be multiples of {LANES}"
    )
    said = f"{_shown(source)} to {_shown(result)}"
    if cast[2] == "i1" and source[-1] != result[-1]:
        fix = "make the mask in its final shape: jax.lax.broadcasted_iota(jnp.int32, shape, dimension) < n"
        return Told(
            f"{said} moves lanes of a mask (i1): {rule}", (fix, "or reshape it as int32 and compare afterwards")
        )
    if source[-1] != result[-1]:
        total = prod(source)
        tail = f"{said} changes the last dimension from {source[-1]} to {result[-1]}: {rule}"
        ways = [f"keep the last dimension: {_shown((total // source[-1], source[-1]))}"]
        if total % LANES == 0 and source[-1] % LANES == 0:
            ways.append(f"or a multiple of {LANES} last: {_shown((total // LANES, LANES))}")
        ways.append("or reshape the array outside of the kernel, where it is a copy or free")
        return Told(tail, tuple(ways))
    uneven = [n for n in (source[-2] if len(source) > 1 else 1, result[-2] if len(result) > 1 else 1) if n % SUBLANES]
    if uneven:
        rows = joined([str(n) for n in sorted(set(uneven))])
        return Told(
            f"{said} keeps the last dimension, and {rows} rows are no multiple of {SUBLANES}: rows move between "
            "registers, which older compilers refuse",
            (
                f"pad the second to last dimension to {next_multiple(max(uneven), SUBLANES)}",
                "or use a newer libtpu: 11x11x1x128 to 121x128 compiles with 0.0.52, with one relayout",
            ),
        )
    return Told("", reason=f"{said} keeps the rule that is known: {rule}")


def _alignment(match: re.Match[str], block: str) -> Told:
    dimension, multiple = match[1], match[2]
    return Told(
        f"the start along dimension {dimension} has to be a multiple of {multiple} for this element type, and the "
        "compiler cannot see that it is",
        (
            f"pl.multiple_of(start, {multiple}) where it always is: layoutproof kernels proves that (multiple_of)",
            f"or make it one: start = i * {multiple}; load an aligned block and select what is wanted by a mask",
            # libtpu 0.0.52 on v5e: rows of 32-bit elements may start anywhere, lanes may not
            *["or keep the rows as float32, where any row may start"] * (int(multiple) < LANES),
        ),
    )


def _slice_size(match: re.Match[str], block: str) -> Told:
    dimension, tile = int(match[1]), int(match[2])
    types = re.findall(_TYPE, block)
    sizes = _dims(types[-1][0]) if types else ()
    if dimension < len(sizes) and sizes[dimension] % tile:
        size = sizes[dimension]
        ways = [f"a slice of {next_multiple(size, tile)}"] + [f"or of {size // tile * tile}"] * (size >= tile)
        cause = f"{size} along dimension {dimension} is no multiple of {tile} ({size} % {tile} = {size % tile})"
        return Told(f"a copy moves whole tiles: {cause}", (*ways, f"or pad the array to a multiple of {tile} there"))
    return Told(
        f"a copy moves whole tiles: the size along dimension {dimension} is no multiple of {tile}",
        (f"slice multiples of {tile}, or pad the array to one there",),
    )


_NESTED = r"(?:[^()]|\([^()]*+\))*+"
_BLOCK = re.compile(rf"has block shape \(({_NESTED})\), array shape \(([\d, ]*)\)")
_EXTENT = re.compile(rf"(?<!\w)\w++\((?:block_size=)?(\d*+){_NESTED}\)|(\d+)|None")


def _block_of(block: str) -> tuple[list[int], list[int]]:
    """The extents of the block and of the array that a message of the Pallas lowering names; a squeezed one is 1."""
    named = _BLOCK.search(block.replace("\n", " "))
    if named is None:
        return [], []
    extents = [int(m[1] or m[2] or 1) for m in _EXTENT.finditer(named[1])]
    return extents, [int(n) for n in re.findall(r"\d+", named[2])]


def _where(block: str) -> str:
    """Which operand of which call the message is about."""
    named = re.search(r"Block spec for (\S+) in pallas_call (\S+)(?: at (\S+))?", block.replace("\n", " "))
    return f"{named[1]} of {named[2]}{f' ({named[3]})' if named[3] else ''}: " if named else ""


def _block_shape(match: re.Match[str], block: str) -> Told:
    rule = f"the last two dimensions of a block are multiples of {SUBLANES} and {LANES}, or the array's own"
    sizes, array = _block_of(block)
    if len(sizes) != len(array) or not sizes:
        return Told(rule, (f"round the block up to multiples of {SUBLANES} and {LANES}, or take the whole dimension",))
    wrong = []
    for back, step in ((1, LANES), (2, SUBLANES)):
        if back <= len(sizes) and sizes[-back] % step and sizes[-back] != array[-back]:
            have = sizes[-back]
            ways = [str(n) for n in (have // step * step, next_multiple(have, step)) if 0 < n < array[-back]]
            last = f"dimension {len(sizes) - back}: {have} of {array[-back]}"
            wrong.append(f"{last}; {' or '.join([*ways, str(array[-back])])}")
    if not wrong:
        return Told("", reason=f"{tuple(sizes)} of {tuple(array)} keeps the rule that is known: {rule}")
    return Told(f"{_where(block)}{rule}; {tuple(sizes)} of {tuple(array)} breaks it", tuple(wrong))


def _one_dimension(match: re.Match[str], block: str) -> Told:
    least, chunk = int(match[2]), int(match[1])
    sizes, array = _block_of(block)
    rule = f"a block of rank 1 is the whole array, a multiple of {chunk}, or a power of 2 from {least} on"
    if len(sizes) != 1 or len(array) != 1:
        return Told(rule, (f"take a multiple of {chunk}",))
    powers = [1 << k for k in range(least.bit_length() - 1, chunk.bit_length()) if 1 << k >= least]
    fits = [n for n in sorted({*powers, sizes[0] // chunk * chunk, next_multiple(sizes[0], chunk)}) if 0 < n < array[0]]
    below, above = [n for n in fits if n < sizes[0]][-1:], [n for n in fits if n > sizes[0]][:1]
    ways = " or ".join(str(n) for n in (*below, *above, array[0]))
    return Told(f"{_where(block)}{rule}; {sizes[0]} of {array[0]} is none", (f"dimension 0: {ways}",))


def _operand_layout(match: re.Match[str], block: str) -> Told:
    dims = [int(n) for n in match[5].split(",") if n]
    said = f"operand {match[1]}, {match[4]}[{match[5]}], is {match[2]} to XLA and {match[3]} to the kernel"
    if 0 in dims:
        return Told(
            f"{said}: XLA gives an array without elements no tile",
            ("pass at least one element, e.g. a table of one 0, and do not read it",),
        )
    return Told(
        f"{said}: the array comes in another layout than a kernel takes",
        ("let XLA choose: remove what pins the layout of this operand (device_put, in_shardings with a Format)",),
    )


def _last_128(match: re.Match[str], block: str) -> Told:
    return Told(
        f"a load or store that skips lanes, or a view of an array whose last dimension is not {LANES}, is not lowered",
        (
            f"pad the last dimension (of attention: the head) to a multiple of {LANES} before the call",
            "or load whole rows and take every second lane by a mask or a matmul",
        ),
    )


def _invalid_layout(match: re.Match[str], block: str) -> Told:
    found = re.search(r'vpad<"(\d+),\{([^,{}]+),([^{}]+)\},\((\d+),(\d+)\)', block)
    if found is None:
        return Told("", reason="the message names no layout; paste the lines after it, 'The MLIR operation involved'")
    lane, lanes = found[3], int(found[5])
    if lane.isdigit() and int(lane) >= lanes:
        return Told(
            f"a vector is said to start at lane {lane} of a register that has {lanes}: the compiler's own mistake",
            (
                f"start at lane 0: take the slice at a multiple of {lanes} before the broadcast, or broadcast first",
                "report it with the operation and the version of libtpu",
            ),
        )
    at = f"offsets {{{found[2]},{lane}}} of tile ({found[4]},{lanes})"
    return Told(
        f"the operation takes no vector of {found[1]} bits at {at}",
        ("copy the value to a scratch of VMEM and load it again, which puts it at offset 0",),
    )


def _comparison(match: re.Match[str], block: str) -> Told:
    found = re.search(rf"\({_TYPE}", block)
    kind = found[2] if found else "this type"
    wide = "float32" if kind.startswith(("b", "f")) else "int32"
    return Told(
        f"this generation has no unit that compares vectors of {kind}",
        (f"compare as {wide}: x.astype(jnp.{wide})",),
    )


def _operand_type(match: re.Match[str], block: str) -> Told:
    return Told(
        "the matrix unit of this generation takes no operands of this type",
        ("cast both operands to bfloat16 or float32 before the dot (int8 and float8 where the chip has them)",),
    )


def _float16(match: re.Match[str], block: str) -> Told:
    if re.search(r"xf16\b", block):
        return Told("the vectors of this generation have no float16", ("use bfloat16, or float32 in the kernel",))
    return Told("", reason="the message does not say which type; paste the lines after it")


def _integers(match: re.Match[str], block: str) -> Told:
    return Told(
        f"this operation is there for vectors of 16 and 32 bits, and got {match[1]}",
        ("cast before it: x.astype(jnp.int32), and back after it",),
    )


def _only_32_bits(match: re.Match[str], block: str) -> Told:
    found = re.search(rf"\({_TYPE}", block)
    given = f", and got {found[2]}" if found else ""
    wide = "int32" if found and found[2].startswith(("i", "u", "s")) else "float32"
    operation = _OPERATION.search(block)
    what = f"{operation[1]} is" if operation else "this operation is"
    return Told(
        f"{what} there for elements of 32 bits in that compiler{given}",
        (
            f"cast before it: x.astype(jnp.{wide}), and back after it",
            "or use a newer libtpu: 0.0.52 takes vector.extract of bf16[2,4,128]",
        ),
    )


def _no_instructions(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the compiler has no instructions for {match[1]} as this kernel uses it",
        (f"compute what becomes {match[1]} outside of the kernel, or with other operations",),
    )


_CALLED = re.compile(r'"[\w.]+"\(')
_TYPED = re.compile(r": \((vector<[^<>]*+>|\w+)\) -> (vector<[^<>]*+>|\w+)")


def _does_not_verify(match: re.Match[str], block: str) -> Told:
    called = ((line, _CALLED.search(line)) for line in block.split("\n"))
    typed = (_TYPED.search(line, begin.end()) for line, begin in called if begin)
    found = next((each for each in typed if each), None)
    types = f" ({found[1]} to {found[2]})" if found else ""
    return Told(
        f"JAX lowers a line of the kernel to a {match[1]}{types} that breaks a rule of its own: {match[2].strip()}",
        (
            "in the line that the message names, cast to float32 before the operation and back after it",
            "or use a newer JAX: it is JAX that makes the operation",
        ),
    )


def _scalar_store(match: re.Match[str], block: str) -> Told:
    return Told(
        "VMEM holds vectors; a single number cannot be stored there",
        (
            "store a block: o_ref[...] = jnp.full(o_ref.shape, x, o_ref.dtype)",
            "or give the output memory_space=pltpu.SMEM, which holds scalars",
        ),
    )


def _unimplemented(match: re.Match[str], block: str) -> Told:
    where = {"TPU": "TPU kernels", "GPU": "GPU kernels", "Triton": "GPU kernels by Triton"}.get(
        match[1] or "TPU", f"{match[1]} kernels"
    )
    return Told(
        f"Pallas has no lowering of {match[2]} for {where} in this version of JAX",
        (f"do {match[2]} outside of the kernel, or write it with operations that are there",),
    )


def _scalars_of_smem(match: re.Match[str], block: str) -> Told:
    return Told(
        "SMEM holds single numbers: a slice of it is neither loaded nor stored as a whole",
        (
            "read one number at a time: ref[i, j] with an integer for each dimension",
            "or keep what is used as a vector in VMEM: BlockSpec(..) without memory_space=SMEM; a scalar-prefetch "
            "operand "
            "is always in SMEM",
        ),
    )


def _not_partitioned(match: re.Match[str], block: str) -> Told:
    return Told(
        "a Pallas call stands in a program that is compiled for several devices, and the partitioner does not know how "
        "to cut a kernel",
        (
            "wrap the call: jax.shard_map(f, mesh=mesh, in_specs=.., out_specs=..); each device then runs it on its "
            "shard",
            "in_specs=P() on all operands runs it whole on every device",
        ),
    )


def _padded_transpose(match: re.Match[str], block: str) -> Told:
    found = re.search(rf"\({_TYPE}", block)
    dims = _dims(found[1]) if found else ()
    odd = [n for n in dims[-2:] if n % LANES]
    which = f"{_shown(dims)} has {joined([str(n) for n in odd])}" if odd else "one dimension"
    return Told(
        f"the compiler of that version turns whole squares of {LANES} x {LANES} only: {which}, no multiple of {LANES}",
        (
            f"pad both dimensions to multiples of {LANES} before the transpose"
            + (f": {_shown([*dims[:-2], *(next_multiple(n, LANES) for n in dims[-2:])])}" if odd else ""),
            "or use a newer libtpu: 0.0.52 takes f32[128,64] and bf16[100,60] on v5e",
        ),
    )


def _nontrivial(match: re.Match[str], block: str) -> Told:
    return Told(
        f"an operand lies in registers in another layout than this operation takes; rows that are no multiple of "
        f"{SUBLANES} are the usual reason",
        (f"make the second to last dimension a multiple of {SUBLANES}", "or broadcast instead of repeating"),
    )


def _device_kind(match: re.Match[str], block: str) -> Told:
    return Told(
        "JAX looks up the chip while it lowers, and finds the CPU that it runs on",
        (
            "lower inside jax.sharding.use_abstract_mesh, with an AbstractMesh whose abstract_device has the chip's "
            "device kind, such as 'TPU v5 lite'",
            "or ask layoutproof kernels --compile, which tells JAX the chip while it lowers",
        ),
    )


def _accumulator(match: re.Match[str], block: str) -> Told:
    product = re.search(r"-> vector<[\dx]*x?(\w{1,10})>", block)
    given = f", and here it is {product[1]}" if product else ""
    return Told(
        f"the matrix unit adds up in 32 bits: the result of a product is float32 or int32{given}",
        ("jnp.dot(a, b, preferred_element_type=jnp.float32), and .astype(o_ref.dtype) when it is stored",),
    )


def _new_dimension(match: re.Match[str], block: str) -> Told:
    cast = _CAST.search(block)
    said = f" ({_shown(_dims(cast[1]))} to {_shown(_dims(cast[3]))})" if cast else ""
    return Told(
        f"an operation{said} puts a dimension of 1 among the last two, or takes one away: rows move to other "
        "registers, and this compiler does not do it for this type or shape",
        (
            "keep the last two dimensions as they are, and put the new one before them: x[None] in place of x[:, None]",
            "or reshape the array outside of the kernel; sums with keepdims=True keep both",
            "layoutproof kernels --compile tries it with today's compiler",
        ),
    )


def _offsets(match: re.Match[str], block: str) -> Told:
    pieces = [_dims(one[0]) for one in re.findall(_TYPE, block)]
    shown = f": {joined([_shown(one) for one in dict.fromkeys(pieces)])}" if pieces else ""
    return Told(
        "arrays are put together where one does not begin at a whole register: pieces of fewer than "
        f"{SUBLANES} rows, or {LANES} lanes, have to be moved{shown}",
        (
            f"pieces of multiples of {SUBLANES} rows (16 of bfloat16, 32 of int8) and {LANES} lanes",
            "or store each piece to its rows of a scratch: s[0:4] = a; s[4:8] = b",
            "or put them together outside of the kernel",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (re.compile(r"[Uu]nsupported shape cast"), _shape_cast),
    (re.compile(r"cannot statically prove that index in dimension (\d+) is a multiple of (\d+)"), _alignment),
    (
        re.compile(r"Failed to verify that the size at dimension (\d+) is divisible by the tile dimension (\d+)"),
        _slice_size,
    ),
    (re.compile(r"last two dimensions of your block shape"), _block_shape),
    (
        re.compile(
            r"rank 1 block shapes[^\n]{0,300}? is a multiple of (\d+), or 3\)[^\n]{0,200}? tiling size \((\d+) ="
        ),
        _one_dimension,
    ),
    (
        re.compile(
            rf"Failed to verify layout for Mosaic kernel operand (\d+): XLA layout \(({_NESTED})\) does not match "
            rf"Mosaic layout \(({_NESTED})\) for an operand of shape (\w+)\[([\d,]*)\]"
        ),
        _operand_layout,
    ),
    (re.compile(r"The last dim size is not 128 in original base memref"), _last_128),
    (re.compile(r"Invalid input layout"), _invalid_layout),
    (re.compile(r"Target does not support this comparison"), _comparison),
    (re.compile(r"Unsupported input data type in matrix multiplication"), _operand_type),
    (re.compile(r"Invalid vector type for load"), _float16),
    (re.compile(r"Only vector<i16> and vector<i32> are supported, but got '?(\w+)"), _integers),
    (re.compile(r"Only 32-bit types supported"), _only_32_bits),
    (re.compile(r"failed to legalize operation '(?!vhlo\.)([\w.]+)'"), _no_instructions),
    (re.compile(r"'([a-z]\w*\.\w+)' op failed to verify that ([^\n]+)"), _does_not_verify),
    (re.compile(r"Cannot store scalars to VMEM"), _scalar_store),
    (re.compile(r"(?:Cannot swap scalars to VMEM)"), _scalar_store),
    (
        re.compile(
            r"Unimplemented primitive in Pallas (TPU|GPU|Triton|Mosaic GPU|SparseCore)?[\w ]{0,20}lowering(?: for "
            r"[\w.]+)?: "
            r"([\w\-]+)"
        ),
        _unimplemented,
    ),
    (
        re.compile(
            r"Can only (load|store) scalars (?:from|to|in) SMEM|(?:Get|Swap) only supports (?:loading )?scalars (?:from"
            r"|in) SMEM"
        ),
        _scalars_of_smem,
    ),
    (re.compile(r"Mosaic kernels cannot be automatically partitioned"), _not_partitioned),
    (re.compile(r"Padded transposes unsupported"), _padded_transpose),
    (re.compile(r"Non-trivial layouts unsupported"), _nontrivial),
    (
        re.compile(r"Expected matmul acc to be 32-bit|Expected 32-bit (?:acc|result) in \w{1,10}::?\w{0,10}Matmul"),
        _accumulator,
    ),
    (re.compile(r"[Uu]nsupported implicit dim change"), _new_dimension),
    (re.compile(r"[Cc]oncatenate? (?:with|of) non-native offsets|result/input offsets? mismatch"), _offsets),
    (re.compile(r"Unsupported TPU device kind: cpu"), _device_kind),
)
