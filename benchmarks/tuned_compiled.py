"""Published block sizes against the second stage of a search: what the compiler expects of the real kernels.

    python benchmarks/tuned_compiled.py ROWS.jsonl --sources FOLDER --answers FILE [--seconds 3600] [--each 20]
    python benchmarks/tuned_compiled.py ROWS.jsonl --answers FILE

The first asks the compiler and adds what it says to FILE, a line for each row; what is there is not asked again. The
second prints the tables. FOLDER: see `tuned_sources.py`, whose kernels are compiled, with their real bodies.

The sample is seeded, as many rows of each kernel, taken in turns, those with the least work first. Candidates of a
row: the published size, the first by each rule that needs no model (fewest steps, fewest bytes, most VMEM), what
repositories take without a table (`tuned_peers.py`), and the cheapest others by the model of stage one, until three
have an estimate. Of each the estimate of cycles is asked, for the row's own chip or one in PROXY, with a time limit;
it counts at least the cycles in which HBM moves the bytes, where a clock is known. Work that only repeats is cut:
sequences and heads of attention, groups of a grouped product, rows and columns of the vocabulary.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuned_kernels import CHIPS, MODELS, TYPES, Asked, array
from tuned_peers import PEERS
from tuned_rank import RULES, all_candidates, first_by, standings

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, Undecided

SEED = 17
SECONDS = 100.0
"""That the compiler may take for one candidate."""
MOST_STEPS = 1 << 14
"""Of a candidate's grid for the whole problem; of more the simulation does not come to an end."""
CHEAPEST = 3
"""Candidates with an estimate that the model of stage one names."""
ASKED = 6
"""Candidates of the model that are asked about, since the compiler refuses some."""
Row = Mapping[str, Any]
Values = Mapping[str, int]


@dataclass(frozen=True)
class Real:
    """A kernel that can be compiled: a function of `tuned_sources`, its arguments, and how blocks are given to it.

    cut: what was left out of the row's problem, in words.
    """

    function: str
    args: tuple[str, ...]
    given: Callable[[Values], dict[str, Any]]
    cut: str = ""


def quantised(row: Row) -> Real:
    """On the chip that stands in for 7x, whole numbers of as many bits stand in for floats."""
    p = row["problem"]
    whole = {"float8_e4m3fn": "int8", "float4_e2m1fn": "int4"} if CHIPS[row["chip"]] == "7x" else {}
    x, w = (whole.get(p[name], p[name]) for name in "xw")
    args = (f"bf16[{p['n_batch']},{p['n_in']}]", f"{TYPES[w]}[{p['n_out']},{p['n_in']}]", f"f32[{p['n_out']}]")
    cut = "whole numbers for floats of as many bits" if whole else ""
    return Real("quantised", args, lambda v: {"blocks": (v["bb"], v["bo"], v["bi"]), "kind": x}, cut)


def flash(row: Row) -> Real:
    """One sequence and one head of the keys; of long ones without a mask 4,096 rows."""
    p, b = row["problem"], row["blocks"]
    (kind, q), (_, k), (_, v) = (array(p[name]) for name in "qkv")
    causal = p["mask"]["is_causal"]
    rows = q[1] if causal else min(q[1], 4096)
    heads = q[2] // k[2]
    args = (f"{kind}[{heads},{rows},{q[3]}]", f"{kind}[1,{k[1]},{q[3]}]", f"{kind}[1,{k[1]},{v[3]}]")

    def given(values: Values) -> dict[str, Any]:
        blocks = {**b, "block_q": values["bq"], "block_kv": values["bk"]}
        blocks["block_kv_compute"] = min(b["block_kv_compute"], values["bk"])
        # the simulation aborts on the product with a constant that base 2 needs
        blocks["use_base2_exp"] = False
        return {"causal": causal, "residuals": p["return_residuals"], "blocks": blocks}

    return Real("flash", args, given, "one sequence, one head of the keys" + ("" if causal else ", 4,096 rows"))


def ragged_dot(row: Row) -> Real:
    """As many groups as have 2,048 rows, at least four."""
    p = row["problem"]
    (kind, lhs), (other, rhs) = array(p["lhs"]), array(p["rhs"])
    groups = p["group_sizes"]
    many = groups["num_groups"] if isinstance(groups, Mapping) else sum(1 for n in groups if n)
    each = lhs[0] // many
    few = min(many, max(4, -(-2048 // each)))
    contracting = p["ragged_dot_dimension_numbers"]["dot_dimension_numbers"][0]
    form = {"[[1], [1]]": "forward", "[[1], [2]]": "transposed", "[[0], [0]]": "summed"}[str(contracting)]
    # all tiles of rows have to divide them
    taken = -(-few * each // 1024) * 1024
    right = [taken, rhs[1]] if form == "summed" else [few, *rhs[1:]]
    args = (f"{kind}[{taken},{lhs[1]}]", f"{other}[{','.join(map(str, right))}]")
    out = p["preferred_element_type"] or "bfloat16"

    def given(v: Values) -> dict[str, Any]:
        blocks = (v["tm"], v["tn"], v["tk"]) if form == "transposed" else (v["tm"], v["tk"], v["tn"])
        return {"groups": few, "form": form, "blocks": blocks, "out": out}

    return Real("ragged_dot", args, given, f"{few} groups of {many}")


def cross_entropy(row: Row) -> Real:
    """At most 2,048 rows, and 8,192 of the vocabulary."""
    p = row["problem"]
    (kind, x), (other, w) = array(p["x"]), array(p["w"])
    rows, words = min(x[0], 2048), min(w[1], 8192)
    args = (f"{kind}[{rows},{x[1]}]", f"s32[{rows}]", f"{other}[{x[1]},{words}]")
    return Real("cross_entropy", args, lambda v: {"blocks": (v["bb"], v["bh"], v["bv"])}, f"{rows} rows, {words} words")


REAL: Mapping[str, Callable[[Row], Real]] = {
    "quantized_matmul": quantised,
    "tokamax.pallas_mosaic_tpu_flash_attention": flash,
    "tokamax.pallas_mosaic_tpu_ragged_dot": ragged_dot,
    "tokamax.pallas_mosaic_tpu_linear_softmax_cross_entropy_loss": cross_entropy,
}
FREE = 0.2
"""Part of VMEM that the model's candidates leave to what their bodies hold; where less is left most are refused."""
RARELY = {
    "tokamax.pallas_mosaic_tpu_ragged_dot": 4,
    "tokamax.pallas_mosaic_tpu_linear_softmax_cross_entropy_loss": 12,
}
"""Kernels whose simulation takes longer: one of their rows after so many of the others."""


def paged(row: Row) -> Real:
    """34 sequences, 512 tokens."""
    p = row["problem"]
    of = "_per_blk" if "q_heads_per_blk" in p else ""
    q, kv, heads, pairs = TYPES[p["q"]], TYPES[p["kv"]], p[f"q_heads{of}"], p[f"kv_heads{of}"]
    each = -(-p["page_x_pages_per_seq"] // p["page"])
    pages = f"{kv}[{34 * each},{p['page']},{2 * pairs},{p['head_dim']}]"
    args = (f"{q}[512,{heads},{p['head_dim']}]", pages, "s32[34]", f"s32[34,{each}]", "s32[35]", "s32[1]")
    name = "paged_jax" if row["kernel"].endswith("(jax)") else "paged"
    return Real(name, args, lambda v: {"blocks": (v["pages"], v["bq"])})


def paged_v3(row: Row) -> Real:
    """34 sequences, 512 tokens."""
    p = row["problem"]
    q, kv = (TYPES[kind] for kind in re.fullmatch(r"q_(\w+)_kv_(\w+)", p["dtypes"]).groups())
    heads, pairs, depth = map(int, re.findall(r"\d+", p["heads"]))
    each = -(-int(re.findall(r"\d+", str(p["model_len"]))[0]) // p["page"])
    packed = 32 // ELEMENT_BITS[kv]
    pages = f"{kv}[{34 * each},{p['page']},{-(-2 * pairs // packed)},{packed},{max(depth, 128)}]"
    tokens = [f"{kind}[512,{n},{depth}]" for kind, n in ((q, heads), (kv, pairs), (kv, pairs))]
    args = (*tokens, pages, "s32[34]", f"s32[{34 * each}]", "s32[35]", "s32[3]")
    return Real("paged_v3", args, lambda v: {"blocks": (v["bq"], v["pages"] * p["page"])})


PROXY = {
    ("quantized_matmul", "7x"): "v6e",
    ("tokamax.pallas_mosaic_tpu_ragged_dot", "7x"): "v6e",
}
"""Kernel and chip -> the chip that stands in for it, because on the row's own the simulation aborts on all rows tried:
on casts to float8, and on a queue of the matrix units that is full."""

BY_HAND: Mapping[str, Callable[[Row], Real]] = {
    "ragged_paged_attention(jax)": paged,
    "ragged_paged_attention_v2": paged,
    "ragged_paged_attention_v3": paged_v3,
}
"""Kernels that copy by hand what tables say."""


def sampled(rows: Sequence[Row], kernel: str, each: int) -> list[tuple[int, Row, Asked]]:
    """So many rows of a kernel that are modelled, the same each time, with their numbers in the file."""
    own = [(k, row) for k, row in enumerate(rows) if row["kernel"] == kernel]
    random.Random(SEED).shuffle(own)
    found: list[tuple[int, Row, Asked]] = []
    for k, row in own:
        try:
            one = MODELS[kernel](row)
        except Undecided:
            continue
        if one.ranked and len(found) < each:
            found.append((k, row, one))
    return found


def in_turns(rows: Sequence[Row], each: int) -> Iterator[tuple[int, Row, Asked]]:
    """The samples of all kernels, one row of each in turn, the one with the least work first."""
    samples = {kernel: sorted(sampled(rows, kernel, each), key=work) for kernel in REAL}
    for number in range(1, each * max(RARELY.values()) + 1):
        for kernel, own in samples.items():
            at, left = divmod(number, RARELY.get(kernel, 1))
            at -= 1
            if not left and at < len(own):
                yield own[at]


def work(taken: tuple[int, Row, Asked]) -> int:
    """What is to be compiled and simulated: the elements of the published blocks, and all that are moved."""
    _, _, one = taken
    return math.prod(one.values.values()) * math.prod(one.problem.shapes[0].sizes.values())


def choices(row: Row, one: Asked) -> dict[str, dict[str, int]]:
    """Who names a candidate -> the candidate, the published one first, each once."""
    room = (1 - FREE) * one.problem.vmem
    left = (
        values
        for values in all_candidates(one.problem)
        if values != dict(one.values) and not slow(values) and -standings(one.problem, values)["vmem"].value <= room
    )
    named = {"published": dict(one.values)}
    named |= {rule: first_by(one.problem, rule) for rule in RULES[1:]}
    named |= {name: made(row) for name, made in PEERS[row["kernel"]].items()}
    named |= {f"model {k}": values for k, values in enumerate(itertools.islice(left, ASKED), 1)}
    found: dict[str, dict[str, int]] = {}
    for name, values in named.items():
        known = all(values[key] in domain for key, domain in one.problem.variables.items())
        long = name != "published" and slow(values)
        if (
            values not in found.values()
            and known
            and not long
            and standings(one.problem, values)["steps"].value <= MOST_STEPS
        ):
            found[name] = values
    return found


def slow(values: Values) -> bool:
    """Blocks of attention that take minutes to compile; its repository's own tuner leaves them out too."""
    return values.get("bq", 0) * values.get("bk", 0) > 2048 * 2048


def answer(at: int, row: Row, one: Asked, source: str, target: str) -> dict[str, Any]:
    """What the rules and the compiler say of the candidates of a row."""
    real, named = REAL[row["kernel"]](row), choices(row, one)
    found: list[dict[str, Any]] = []
    said = estimates(real, list(named.values()), source, CHIPS[row["chip"]], target)
    for name, values in named.items():
        # without an estimate of the published size the others say nothing
        known = sum(each["cycles"] is not None and each["by"].startswith("model") for each in found)
        if known == CHEAPEST or (found and found[0]["cycles"] is None):
            break
        cycles, why = next(said)
        stands = {rule: stand.value for rule, stand in standings(one.problem, values).items()}
        found.append({"by": name, "values": values, "cycles": cycles, "why": why, **stands})
    about = {"row": at, "kernel": row["kernel"], "chip": CHIPS[row["chip"]], "target": target, "cut": real.cut}
    return {**about, "candidates": found}


def estimates(
    real: Real, given: Sequence[Values], source: str, own: str, target: str
) -> Iterator[tuple[int | None, str]]:
    """(cycles, why there are none) of each candidate. A proxy gives kernels as much VMEM as their own chip does."""
    from layoutproof.compiler import libtpu
    from layoutproof.compiler.child import Child, ask
    from layoutproof.hardware import tpu_chips
    from layoutproof.kernel.kernel import Kernel
    from layoutproof.mosaic.bounds import product_cycles, traffic_cycles
    from layoutproof.mosaic.compiling import flags
    from layoutproof.pallas.from_jax.sent import sent
    from layoutproof.pallas.from_jax.user import calls_of

    place = f"{Path(__file__).with_name('tuned_sources.py').as_posix()}:{real.function}"
    with tempfile.TemporaryDirectory() as folder:
        room = f"--xla_tpu_scoped_vmem_limit_kib={tpu_chips.CHIPS[own].vmem_scoped >> 10}" if own != target else ""
        told = {libtpu.FLAGS: f"{room} {flags(folder, True)}".strip(), **libtpu.environment("")}
        child = Child(libtpu.WHAT, "layoutproof.mosaic.compiling", told, SECONDS)
        about = {
            "target": target,
            "call": 0,
            "same": "",
            "library": "",
            "flags": room,
            "folder": folder,
            "profile": True,
        }
        named = [{**real.given(values), "source": source} for values in given]

        def least(kwargs: Mapping[str, Any], flops: int) -> tuple[int, int]:
            """Cycles that the matrix products and the traffic of the kernel take by themselves."""
            kernel = next(iter(calls_of(place, real.args, kwargs, target=target)))
            if not isinstance(kernel, Kernel):
                return 0, 0
            return product_cycles(kernel, target, flops), traffic_cycles(kernel, target)

        questions = ({"code": sent(place, real.args, kwargs), **about} for kwargs in named)
        for said, kwargs in zip(ask(child, questions, dict), named, strict=True):
            if said.value is None:
                yield None, said.problem[:200]
            elif said.value["refused"]:
                yield None, f"refused: {said.value['refused'][:200]}"
            elif said.value["unseen"]:
                yield None, f"unseen: {said.value['unseen'][0]}"
            elif said.value["cycles"] is None:
                yield None, "the compiler wrote none"
            else:
                products, moved = least(kwargs, said.value["flops"])
                if said.value["cycles"] < products:
                    yield None, "fewer cycles than the matrix products take"
                else:
                    yield max(said.value["cycles"], moved), ""


def add(rows: Sequence[Row], each: int, source: str, answers: Path, seconds: float) -> None:
    """Asks about rows that are not answered yet, until so many seconds are over."""
    done = {one["row"] for one in read(answers)}
    end = time.monotonic() + seconds
    with answers.open("a", encoding="utf-8") as file:
        for at, row, one in in_turns(rows, each):
            if at in done:
                continue
            if time.monotonic() > end:
                break
            start = time.monotonic()
            own = CHIPS[row["chip"]]
            said = answer(at, row, one, source, PROXY.get((row["kernel"], own), own))
            said["seconds"] = round(time.monotonic() - start, 1)
            file.write(json.dumps(said) + "\n")
            file.flush()


def traced(rows: Sequence[Row], each: int, source: str) -> str:
    """Kernels that copy by hand: what the compiler says of published sizes, beside the declared kernel, as Markdown."""
    from layoutproof.mosaic.ask import asked, compiled
    from layoutproof.pallas.from_jax.user import calls_of

    lines = [
        "| kernel | chip | blocks | taken | VMEM by the compiler | declared | no estimate, because |",
        "|---" * 7 + "|",
    ]
    for kernel, real_of in BY_HAND.items():
        for _, row, one in sampled(rows, kernel, each):
            real, target = real_of(row), CHIPS[row["chip"]]
            place = f"{Path(__file__).with_name('tuned_sources.py').as_posix()}:{real.function}"
            kwargs = {**real.given(one.values), "source": source}
            try:
                calls = calls_of(place, real.args, kwargs, target=target)
                question = asked(place, real.args, kwargs, calls[-1], len(calls) - 1, target)
                (said,) = compiled([question], seconds=4 * SECONDS)
            except (LayoutError, Undecided) as error:
                lines.append(f"| {kernel} | {target} | {dict(one.values)} | ? | | | {str(error)[:150]} |")
                continue
            words = said.estimate.reason or said.refused or said.problem
            vmem = "-" if said.vmem is None else f"{said.vmem.total:,}"
            own = -standings(one.problem, one.values)["vmem"].value
            lines.append(
                f"| {kernel} | {target} | {dict(one.values)} | {said.accepted} | {vmem} | {own:,.0f} | {words[:150]} |"
            )
    return "\n".join(lines)


def read(answers: Path) -> list[dict[str, Any]]:
    """The answers of a file, [] where there is none."""
    if not answers.exists():
        return []
    return [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Place:
    """Where the published size of one row stands among candidates with an estimate.

    rank: from 1, of ties the middle.  ratio: its value by the best one, 1 or more.  first: no other is better; of
    times, by more than the 5 % within which they say nothing.
    """

    rank: float
    ratio: float
    first: bool


def placed(candidates: Sequence[Mapping[str, Any]], rule: str) -> Place:
    """The first of candidates among all, by "cycles" or one of RULES."""
    own, *others = (float(one[rule]) for one in candidates)
    better = sum(value < own for value in others)
    best = min([own, *others])
    # of bytes of VMEM the most is best, and they are negative
    ratio = own / best if best > 0 else best / own
    times = rule in ("cycles", "cost")
    return Place(1 + better + sum(value == own for value in others) / 2, ratio, ratio <= (1.05 if times else 1.0))


def known(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The candidates of a row that have an estimate, the published one first; [] where it has none, or no other has."""
    found = [one for one in answer["candidates"] if one["cycles"] is not None]
    return found if len(found) > 1 and found[0]["by"] == "published" else []


def ranking(answers: Sequence[Mapping[str, Any]]) -> str:
    """The second stage beside the rules, on the same candidates, as Markdown."""
    words = {
        "cycles": "estimate",
        "cost": "model",
        "steps": "fewest steps",
        "bytes": "fewest bytes",
        "vmem": "most VMEM",
    }
    head = ["kernel", "chip", "estimates, rows", "candidates, median", *(f"{word}" for word in words.values())]
    lines = [
        f"| {' | '.join([*head, 'within 5 %, 10 % of the best estimate'])} |",
        "|---|---|" + "---:|" * (len(head) - 1),
    ]
    kernels = dict.fromkeys(one["kernel"] for one in answers)
    for kernel in kernels:
        of_kernel = [one for one in answers if one["kernel"] == kernel]
        for chip, target in dict.fromkeys((one["chip"], one["target"]) for one in of_kernel):
            own = [one for one in of_kernel if (one["chip"], one["target"]) == (chip, target)]
            lines.append(_line([kernel, chip if chip == target else f"{chip}, on {target}"], own, list(words)))
    for kernel in [*kernels, "all"]:
        own = [one for one in answers if one["chip"] == one["target"] and kernel in (one["kernel"], "all")]
        lines.append(_line([kernel, "own"], own, list(words)))
    return "\n".join(lines)


def _line(cells: list[str], own: Sequence[Mapping[str, Any]], rules: Sequence[str]) -> str:
    rows = [found for one in own if (found := known(one))]
    cells = [*cells, f"{len(rows)} of {len(own)}"]
    if rows:
        cells.append(f"{statistics.median(map(len, rows)):g}")
        for rule in rules:
            places = [placed(row, rule) for row in rows]
            median, five = statistics.median(one.rank for one in places), sum(one.rank <= 5 for one in places)
            cells.append(f"{median:g}, {five / len(rows):.0%}, {sum(one.first for one in places)}")
        ratios = [placed(row, "cycles").ratio for row in rows]
        cells.append(", ".join(f"{sum(ratio <= most for ratio in ratios) / len(rows):.0%}" for most in (1.05, 1.1)))
    return f"| {' | '.join(cells)} |"


def named(answers: Sequence[Mapping[str, Any]]) -> str:
    """What each rule and peer names, by the estimate, as Markdown: how far its own choice is from the best."""
    lines = [
        "| kernel | who | rows | cycles by the best: median | within 5 % | within 10 % |",
        "|---|---|" + "---:|" * 4,
    ]
    for kernel in dict.fromkeys(one["kernel"] for one in answers):
        ratios: dict[str, list[float]] = {}
        for row in filter(None, (known(one) for one in answers if one["kernel"] == kernel)):
            best = min(one["cycles"] for one in row)
            models = [one for one in row if one["by"].startswith("model")]
            firsts = {"model": min(row, key=lambda one: one["cost"])} if models else {}
            firsts |= {rule: min(row, key=lambda one: (one[rule], one["cost"])) for rule in RULES[1:]}
            firsts |= {one["by"]: one for one in row if not one["by"].startswith("model") and one["by"] not in firsts}
            for who, one in firsts.items():
                ratios.setdefault(who, []).append(one["cycles"] / best)
        for who, of in ratios.items():
            near = [f"{sum(ratio <= most for ratio in of) / len(of):.0%}" for most in (1.05, 1.1)]
            lines.append(f"| {kernel} | {who} | {len(of)} | {statistics.median(of):.2f} | {near[0]} | {near[1]} |")
    return "\n".join(lines)


def missing(answers: Sequence[Mapping[str, Any]]) -> str:
    """Why candidates have no estimate, as a list of Markdown."""
    left = (one for answer in answers for one in answer["candidates"] if one["cycles"] is None)
    why = Counter(one["why"].split("\n")[0][:110] for one in left)
    return "\n".join(f"- {count}: {reason}" for reason, count in why.most_common(12))


def main() -> None:
    """Asks, or prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--sources", default="")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--traced", type=int, default=0, help="so many rows of each kernel that copies by hand")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines() if line.strip()]
    if options.sources and not options.traced:
        add(rows, options.each, options.sources, options.answers, options.seconds)
    if options.traced:
        print(traced(rows, options.traced, options.sources))
        return
    said = read(options.answers)
    print("\n\n".join([ranking(said), named(said), missing(said)]))


if __name__ == "__main__":
    main()
