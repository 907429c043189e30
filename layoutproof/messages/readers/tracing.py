"""What JAX says of shapes while it traces a function: of products, broadcasts, reshapes, carries, sizes that run.

Sources: messages of jax 0.10.2; `tests/messages/test_jax_says.py` asks the installed JAX for each. What a message says
is held against the sizes in it: where these would fit, its cause is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import Kind, Told, explained, sizes_in
from layoutproof.messages.pasted import PastedLine

_SHAPE = r"\(([\d, ]{0,200})\)"
_TYPE = r"(\w{1,20}\[[^\[\]\n]{0,200}\]\S{0,40})"
_CONTRADICTS = "the sizes in the message agree, so they do not explain it"


def _product(match: re.Match[str], block: str) -> Told:
    one, two = sizes_in(match[2]), sizes_in(match[3])
    if one == two:
        return Told("", reason=_CONTRADICTS)
    which = "are summed over" if match[1].startswith("contracting") else "are batch dimensions"
    return Told(
        f"a product pairs the dimensions that {which}: {one} of the left operand, {two} of the right one",
        (
            "give the pairs of equal size: dimension_numbers of lax.dot_general, or the letters of jnp.einsum",
            "x @ y pairs the last dimension of x with the last but one of y: y.T where y is stored the other way round",
        ),
    )


def _label(match: re.Match[str], block: str) -> Told:
    letter, here, before = match[1], int(match[3]), int(match[4])
    if here == before:
        return Told("", reason=_CONTRADICTS)
    return Told(
        f"the letter {letter} of einsum stands for dimensions of two sizes, {before} and {here}",
        (f"another letter for one of them; an equal letter says that the sizes are equal, here {before} and {here}",),
    )


def _broadcast(match: re.Match[str], block: str) -> Told:
    return _fits(match[1], [sizes_in(shape) for shape in re.findall(_SHAPE, match[2])])


def _requested(match: re.Match[str], block: str) -> Told:
    given, wanted = (sizes_in(match[k].partition("[")[2]) for k in (1, 2))
    pairs = zip(reversed(given), reversed(wanted), strict=False)
    if len(given) <= len(wanted) and all(a in (1, b) for a, b in pairs):
        return Told("", reason=_CONTRADICTS)
    return Told(
        f"{given} cannot be spread over {wanted}: from the last dimension on, each size is 1 or that of the target",
        ("x[:, None] puts a dimension of 1 where one is to be repeated; jnp.broadcast_to takes the whole shape",),
    )


def _fits(what: str, shapes: Sequence[tuple[int, ...]]) -> Told:
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    wrong = [d for d in range(rank) if len({shape[d] for shape in padded} - {1}) > 1]
    if not wrong:
        return Told("", reason=_CONTRADICTS)
    at = [f"{' and '.join(str(shape[d]) for shape in padded)} in dimension {d - rank}" for d in wrong]
    return Told(
        f"{what} takes shapes whose sizes are equal, or 1, counted from the last dimension; here they are {joined(at)}",
        ("x[:, None] puts a dimension of 1 where one is to be repeated; x[a:b] cuts, jnp.pad fills up",),
    )


def _reshape(match: re.Match[str], block: str) -> Told:
    shape, size, wanted = sizes_in(match[1]), int(match[2]), tuple(int(n) for n in re.findall(r"-?\d+", match[3]))
    known = prod(n for n in wanted if n >= 0)
    open_ = [n for n in wanted if n < 0]
    fits = size == known if not open_ else known > 0 and size % known == 0
    if prod(shape) != size or fits or len(open_) > 1:
        return Told("", reason=_CONTRADICTS)
    what = f"{wanted} takes {known}" if not open_ else f"{wanted} takes a multiple of {known}, which {size} is not"
    ways = []
    for d, n in enumerate(wanted):
        rest = prod(m for k, m in enumerate(wanted) if k != d and m >= 0)
        if not open_ and rest and size % rest == 0:
            ways.append(
                f"{(*wanted[:d], size // rest, *wanted[d + 1 :])} takes as many (dimension {d}: {size // rest} for {n})"
            )
    return Told(
        f"{shape} has {size} elements, and {what}", (*ways, "or " * bool(ways) + "pad or cut the array before it")
    )


def _concatenated(match: re.Match[str], block: str) -> Told:
    axis, shapes = int(match[1]), [sizes_in(shape) for shape in re.findall(_SHAPE, match[2])]
    if len({len(shape) for shape in shapes}) != 1:
        return Told(
            f"arrays that are put together have as many dimensions; these are {joined([str(s) for s in shapes])}"
        )
    differ = [d for d in range(len(shapes[0])) if d != axis and len({shape[d] for shape in shapes}) > 1]
    if not differ:
        return Told("", reason=_CONTRADICTS)
    sizes = [f"dimension {d}: {', '.join(str(shape[d]) for shape in shapes)}" for d in differ]
    return Told(
        f"arrays are put together along dimension {axis}, and differ in another one ({'; '.join(sizes)})",
        (
            *[f"axis={differ[0]}, where they are to follow one another along that"] * (len(differ) == 1),
            "or cut or pad them to one size in every other dimension",
        ),
    )


def _stacked(match: re.Match[str], block: str) -> Told:
    shapes = [sizes_in(shape) for shape in re.findall(_SHAPE, match[1])]
    if len(set(shapes)) < 2:
        return Told("", reason=_CONTRADICTS)
    return Told(
        f"arrays that are stacked have one shape; these are {joined([str(s) for s in shapes])}",
        ("jnp.concatenate, where they are to follow one another along a dimension that there is",),
    )


def _changed(what: str, one: str, two: str, after: str) -> Told:
    """Two types that are to be one."""
    kinds, sizes = ((t.partition("[")[0] for t in (one, two)), [sizes_in(t.partition("[")[2]) for t in (one, two)])
    kind, other = kinds
    if one == two:
        return Told("", reason=_CONTRADICTS)
    ways = []
    varies = re.search(r"\{V:([\w,() ]{1,60})\}", two)
    if varies and kind == other and sizes[0] == sizes[1]:
        axes = varies[1].strip("()").replace(" ", "").strip(",")
        cast = f"jax.lax.pcast(first, {tuple(axes.split(','))}, to='varying')"
        ways.append(f"the second varies over the mesh: cast the first, {cast}")
    if kind != other and sizes[0] == sizes[1]:
        ways.append(f"{after}.astype(jnp.{kind}), or {other} from the beginning; x.dtype says it")
    elif sizes[0] != sizes[1]:
        ways.append(
            "one size throughout: an array of the largest, and lax.dynamic_update_slice or a mask for what is in use"
        )
    return Told(f"{what}: {one} and {two}", tuple(ways))


def _carry(match: re.Match[str], block: str) -> Told:
    return _changed(
        f"what a loop carries ({match[1]}) has one type for all turns, and goes in and comes out as two",
        match[2], match[3], "the result",
    )  # fmt: skip


def _branches(match: re.Match[str], block: str) -> Told:
    return _changed(
        f"branches give one type, and {match[1]} and {match[3]} give two", match[2], match[4], "the other result"
    )


def _lengths(match: re.Match[str], block: str) -> Told:
    sizes = sizes_in(match[1])
    if len(set(sizes)) < 2:
        return Told("", reason=_CONTRADICTS)
    return Told(
        "scan goes along the first dimension of every array that it is given, and these are "
        f"{joined(list(map(str, sizes)))} long",
        ("arrays of one length; what stays the same for all turns is closed over, or carried",),
    )


def _mapped(match: re.Match[str], block: str) -> Told:
    sizes = dict.fromkeys(re.findall(r"\bhad size (\d{1,19})\b", block))
    if len(sizes) < 2:
        return Told("", reason="the message names no two sizes; paste the lines after it")
    who = re.findall(r"\bhad size (\d{1,19})\W{1,3}(?:e\.g\. )?axis (-?\d{1,9}) of argument ([^\s;]{1,80})", block)
    named = f": {joined([f'axis {axis} of {name} is {size}' for size, axis, name in who[:3]])}" if who else ""
    return Told(
        f"vmap goes along axes of one size, and these are {joined([*sizes])}{named}",
        ("in_axes says which axis of each argument; None for one that is the same for all",),
    )


def _size_that_runs(match: re.Match[str], block: str) -> Told:
    who = re.search(r"depends on the values? of the arguments? (\w{1,80})", block)
    name = who[1] if who else ""
    value = f"argument {name} of a traced function" if name else "a value of a traced function"
    return Told(
        f"a shape is made of {value}, which only the running program knows; a program is compiled for one shape",
        (
            f"static_argnames={name!r}" * bool(name)
            or "static_argnames or static_argnums for what the shape is made of",
            "or the largest size that there can be, and jnp.where with a mask of what is in use",
        ),
    )


def _mask(match: re.Match[str], block: str) -> Told:
    return Told(
        "x[mask] has as many elements as the mask has True, which only the running program knows; a program is "
        "compiled for one shape",
        (
            "jnp.where(mask, x, 0) keeps the shape",
            "or x[jnp.nonzero(mask, size=n, fill_value=0)], with n as many as there can be",
        ),
    )


def _within(match: re.Match[str], block: str) -> Told:
    part, whole = sizes_in(match[2]), sizes_in(match[3])
    wrong = [d for d, (a, b) in enumerate(zip(part, whole, strict=False)) if a > b]
    if len(part) != len(whole) or not wrong:
        return Told("", reason=_CONTRADICTS)
    sizes = [f"{part[d]} of {whole[d]} in dimension {d}" for d in wrong]
    return Told(
        f"a part is taken or stored that is larger than the array: {joined(sizes)}", ("a part of at most that size",)
    )


def _squeezed(match: re.Match[str], block: str) -> Told:
    shape, dimensions = sizes_in(match[1]), sizes_in(match[2])
    wrong = [d for d in dimensions if d < len(shape) and shape[d] != 1]
    if not wrong:
        return Told("", reason=_CONTRADICTS)
    ones = [str(d) for d, n in enumerate(shape) if n == 1]
    return Told(
        f"only dimensions of 1 are left out, and {joined([f'dimension {d} is {shape[d]}' for d in wrong])}",
        (
            f"leave out {joined(ones)}, which is 1"
            if ones
            else f"x[0] takes one of it, jnp.sum all; of {shape} none is 1",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            r"dot_general requires (contracting dimensions|lhs batch dimensions and rhs batch dimensions) to have the "
            rf"same shape, got {_SHAPE} and {_SHAPE}"
        ),
        _product,
    ),
    (
        re.compile(
            r"Size of label '(\w)' for operand (\d{1,9}) \((\d{1,19})\) does not match previous terms \((\d{1,19})\)"
        ),
        _label,
    ),
    (
        re.compile(rf"\b(\w{{1,40}}) got incompatible shapes for broadcasting: ({_SHAPE}(?:, {_SHAPE}){{1,20}})"),
        _broadcast,
    ),
    (
        re.compile(rf"Incompatible types for broadcasting: input type={_TYPE} and requested type={_TYPE}"),
        _requested,
    ),
    (
        re.compile(rf"cannot reshape array of shape {_SHAPE} \(size (\d{{1,19}})\) into shape \(([-\d, ]{{0,200}})\)"),
        _reshape,
    ),
    (
        re.compile(
            r"Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
            rf"concatenating along dimension (\d{{1,9}}) for shapes ({_SHAPE}(?:, {_SHAPE}){{1,20}})"
        ),
        _concatenated,
    ),
    (re.compile(rf"All input arrays must have the same shape\. Got ({_SHAPE}(?:, {_SHAPE}){{1,20}})"), _stacked),
    (
        re.compile(
            rf"[Tt]he input carry (?:component )?(\S{{1,80}}) has type {_TYPE} but the corresponding output carry "
            rf"component has type {_TYPE}, so"
        ),
        _carry,
    ),
    (
        re.compile(
            rf"[Tt]he output of (\w{{1,80}}) has type {_TYPE} but the corresponding output of (\w{{1,80}}) has type "
            rf"{_TYPE}, so"
        ),
        _branches,
    ),
    (re.compile(r"scan got values with different leading axis sizes: ([\d, ]{1,200})"), _lengths),
    (re.compile(r"vmap got inconsistent sizes for array axes to be mapped"), _mapped),
    (re.compile(r"Shapes must be 1D sequences of concrete values of integer type"), _size_that_runs),
    (re.compile(r"Array boolean indices must be concrete"), _mask),
    (
        re.compile(
            r"(slice_sizes|update shape) must be (?:less than or equal to|smaller than) operand shape, got "
            rf"(?:slice_sizes|update shape) {_SHAPE} for operand shape {_SHAPE}"
        ),
        _within,
    ),
    (
        re.compile(
            rf"cannot select an axis to squeeze out which has size not equal to one, got shape={_SHAPE} and "
            rf"dimensions={_SHAPE}"
        ),
        _squeezed,
    ),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of shapes that tracing finds in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("shapes", _KINDS, lines)
