"""Answers about arrays as text; every certificate says how many candidates it covers."""

from __future__ import annotations

from layoutproof.core.result import Verdict
from layoutproof.searching.array_layouts import ArrayAnswer, SharedAnswer
from layoutproof.searching.arrays_answer import ArraysAnswer
from layoutproof.searching.padded_shapes import PaddingAnswer
from layoutproof.searching.shardings import RESTRICTIONS, ShardExchange, ShardingAnswer


def text(answer: ArraysAnswer, verdict: Verdict | None = None) -> str:
    """The answer as text, a section for everything that was asked. verdict: where more than the search decides it."""
    found = answer.verdict if verdict is None else verdict
    lines = [f"{answer.name}, {answer.target} (rules measured on libtpu 0.0.42.1): {found.value}"]
    lines += ["", "layouts"] if answer.layouts else []
    for name, one in answer.layouts.items():
        lines += (_tiles if one.best[0].values else _orders)(name, one, answer.best)
    if answer.shared is not None:
        lines += [f"  unknown  {answer.shared}"] if isinstance(answer.shared, str) else _shared(answer.shared)
    lines += ["", "padding"] if answer.padding else []
    for name, grown in answer.padding.items():
        lines += [f"  {name}  unknown: {grown}"] if isinstance(grown, str) else _padding(name, grown)
    if answer.shardings is not None:
        lines += ["", "shardings", *_shardings(answer.shardings)]
    return "\n".join(lines)


def _orders(name: str, answer: ArrayAnswer, best: int) -> list[str]:
    """The best layouts of one array."""
    first = answer.best[0]
    lines = [f"  {name}  {first.layout}  {_bytes(first.bytes)}, {_times(first.bytes, answer.unpadded)} of its elements"]
    lines += [f"    next  {sized.layout}  {_bytes(sized.bytes)}" for sized in answer.best[1:best]]
    if answer.default.layout != first.layout:
        said = f"{answer.default.layout}  {_bytes(answer.default.bytes)}"
        lines.append(f"    default  {said}, {_times(answer.default.bytes, first.bytes)} of the best")
    else:
        lines.append("    it is the compiler's default")
    if answer.given is not None:
        said = f"{answer.given.layout}  {_bytes(answer.given.bytes)}"
        lines.append(f"    written  {said}, {_times(answer.given.bytes, first.bytes)} of the best")
    lines.append(f"    certificate  enumerated: all {answer.covered} orders of its dimensions")
    return lines


def _tiles(name: str, answer: ArrayAnswer, best: int) -> list[str]:
    """The best tiles of one array."""
    lines = []
    for rank, one in enumerate(answer.best[:best]):
        values = ", ".join(f"{key} = {value}" for key, value in one.values.items())
        more = f"{_bytes(one.bytes)}, {_times(one.bytes, answer.unpadded)} of its elements"
        lines.append(f"  {name if rank == 0 else ' ' * len(name)}  {values}  {one.layout}  {more}")
    others = len(answer.best) - best
    lines += [f"    and {others} that take as many bytes or more"] if others > 0 else []
    lines.append(
        f"    default  {answer.default.layout}  {_bytes(answer.default.bytes)}: what the compiler gives by itself"
    )
    lines.append(
        f"    certificate  enumerated: all {answer.covered} choices; whether the compiler takes one is not asked"
    )
    return lines


def _shared(answer: SharedAnswer) -> list[str]:
    """One order for all arrays."""
    lines = [f"  shared order, fastest first: {', '.join(answer.order)}  {_bytes(answer.bytes)} together"]
    lines += [f"    {name}  {sized.layout}  {_bytes(sized.bytes)}" for name, sized in answer.layouts.items()]
    more = "no more than with" if answer.bytes == answer.apart else f"{_times(answer.bytes, answer.apart)} of"
    lines.append(f"    {more} an order of its own for each ({_bytes(answer.apart)})")
    lines.append(f"    certificate  enumerated: all {answer.covered} orders, by {answer.sets} sets of names")
    return lines


def _padding(name: str, answer: PaddingAnswer) -> list[str]:
    """The nearest shape that wastes nothing."""
    lines = [f"  {name}  {answer.now}  {_bytes(answer.bytes)}, {answer.wasted} of them wasted"]
    if answer.full is None:
        lines.append(f"    none  {answer.reason}")
    elif answer.wasted:
        lines.append(f"    grow to  {answer.full}  {answer.growth} elements more, nothing wasted")
        what = f"each of {answer.covered} choices" if answer.covered > 1 else "the one choice"
        lines.append(f"    certificate  closed form: the least extents for {what} of tiled dimensions")
    else:
        lines.append("    nothing to grow")
    return lines


def _shardings(answer: ShardingAnswer) -> list[str]:
    """The best assignments of mesh axes, or why there is none."""
    lines = []
    for rank, one in enumerate(answer.best, 1):
        shards = one.shards
        sent = "" if answer.price is None else f"; {_bytes(one.sent)} sent a step; cost {one.cost}"
        lines.append(f"  {rank}.  {_bytes(one.bytes)} a device, of {answer.memory}{sent}")
        lines += [
            f"    {n}  {s.partition}  a shard is {s.layout}  {_bytes(s.bytes)}{'' if s.even else ', uneven'}"
            for n, s in shards.items()
        ]
        lines += [f"    {_exchange(each)}  {_bytes(each.bytes)}" for each in one.exchanges]
    required = " and ".join(RESTRICTIONS[word] for word in answer.require)
    if answer.reason:
        lines.append(f"  unknown  {answer.reason}")
    elif answer.infeasible:
        demands = f" for {' and '.join(answer.infeasible[1:])}" if answer.infeasible[1:] else ", however they are cut"
        lines.append(f"  none  {answer.infeasible[0]} are not enough{demands}")
        with_them = f" with {required}" if required else ""
        lines.append(f"    {_bytes(answer.least)} a device would do{with_them}")
        lines += [f"    without {word} {_bytes(size)} a device would do" for word, size in answer.enough]
    if not answer.reason:
        lines.append(f"    restriction  {_restriction(answer, required)}")
        among = f"; the best of those with {required}" if required else "; the best of all"
        among = "" if answer.infeasible else among
        lines.append(f"    certificate  enumerated: all {answer.covered} assignments of mesh axes{among}")
        lines.append(f"    rule  {answer.rule}")
        if answer.price is None:
            lines.append(
                "    not counted  what the devices then send one another; products: [..] says what is computed"
            )
        else:
            lines.append(f"    cost  bytes held + {answer.price} x bytes sent, by the collectives that products need")
    return lines


def _restriction(answer: ShardingAnswer, required: str) -> str:
    """The restriction on every shard, its cost, and how it is lifted."""
    if not required:
        return "none; JAX takes uneven shards inside of a jitted function only"
    without = "no fewer bytes" if answer.least == answer.least_of_all else f"{_bytes(answer.least_of_all)} a device"
    return f"{required}; {without} without (write require: [] to lift it)"


def _exchange(one: ShardExchange) -> str:
    """A collective, the product that needs it, and its axes; with the array where it is not the product's output."""
    what = f"{one.array} for {one.product}" if one.kind == "all-gather" else str(one.product)
    return f"{one.kind} of {what} over {', '.join(one.axes)}"


def _bytes(size: int) -> str:
    return f"{size} bytes"


def _times(size: int, of: int) -> str:
    return f"{size / of:.4g}x" if of else "any multiple"
