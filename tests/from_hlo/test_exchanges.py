"""What devices exchange in a partitioned module: each collective against its definition, its groups in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.from_hlo.programs import compiled, partitioned
from layoutproof.hlotext.lines import read_hlo
from layoutproof.values.floats import Floats
from layoutproof.values.known import Known
from layoutproof.values.refusals import Apart, NotModelled
from layoutproof.values.walk import Prepared, Walk

HEAD = (
    "HloModule m, num_partitions=4\n"
    "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"
    "max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] maximum(x, y) }\n"
)
ROWS, WHOLE = "{devices=[4,1]<=[4]}", "{replicated}"
X = np.random.default_rng(5).standard_normal((8, 4))
PARTS = X.reshape(4, 2, 4)


def run(entry: str, ins: list[str], outs: list[str], *given: Any, before: str = "", head: str = HEAD) -> list[Any]:
    """What a module computes of whole arrays. entry: its instructions, a line each."""
    lines = "".join(f"  {line}\n" for line in entry.strip().splitlines())
    (module,) = read_hlo(f"{head}{before}\nENTRY e {{\n{lines}}}\n".splitlines(keepends=True))
    many = module.header.partitions * module.header.replicas
    made = partitioned(compiled(module), many, ins, outs)
    numbers = Floats(1)
    values = [Known(np.asarray(x)) if np.asarray(x).dtype.kind in "iub" else numbers.constant(x) for x in given]
    return [np.asarray(v.array) for v in Walk(numbers, Prepared()).run(made.program, values)]


def over(groups: str) -> str:
    """The attributes of a collective of partitions."""
    return f"channel_id=1, replica_groups={groups}, use_global_device_ids=true"


ALL = over("{{0,1,2,3}}")
PAIRS = ("{{0,2},{1,3}}", "[2,2]<=[2,2]T(1,0)", "mesh['a'=2,'b'=2] {'a'}")
CASES = {
    "all-reduce": (f"ROOT r = f32[2,4] all-reduce(x), {ALL}, to_apply=add", WHOLE, PARTS.sum(0)),
    "all-reduce of maxima": (f"ROOT r = f32[2,4] all-reduce(x), {ALL}, to_apply=max", WHOLE, PARTS.max(0)),
    **{
        f"all-reduce over {groups}": (
            f"ROOT r = f32[2,4] all-reduce(x), {over(groups)}, to_apply=add", "{devices=[2,1,2]<=[2,2]T(1,0) "
            "last_tile_dim_replicate}", np.concatenate([PARTS[0] + PARTS[2], PARTS[1] + PARTS[3]]),
        )
        for groups in PAIRS
    },
    "all-gather": (f"ROOT r = f32[8,4] all-gather(x), {ALL}, dimensions={{0}}", WHOLE, X),
    "all-gather in another order": (
        f"ROOT r = f32[8,4] all-gather(x), {over('{{2,0,3,1}}')}, dimensions={{0}}", WHOLE,
        PARTS[[2, 0, 3, 1]].reshape(8, 4),
    ),
    "all-gather along columns": (
        f"ROOT r = f32[2,16] all-gather(x), {ALL}, dimensions={{1}}", WHOLE, np.concatenate(list(PARTS), 1),
    ),
    "reduce-scatter": (
        f"ROOT r = f32[2,1] reduce-scatter(x), {ALL}, dimensions={{1}}, to_apply=add", "{devices=[1,4]<=[4]}",
        PARTS.sum(0),
    ),
    "all-to-all": (
        "ROOT r = f32[2,4] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}", ROWS,
        np.concatenate([np.stack([PARTS[k][:, d] for k in range(4)], 1) for d in range(4)]),
    ),
    "all-to-all of a tuple": (
        "a = f32[2,4] add(x, x)\nb = f32[2,4] copy(x)\n"
        "t = (f32[2,4], f32[2,4]) all-to-all(a, b), channel_id=1, replica_groups={{0,1},{2,3}}\n"
        "ROOT r = f32[2,4] get-tuple-element(t), index=1",
        ROWS, np.concatenate([2 * PARTS[1], PARTS[1], 2 * PARTS[3], PARTS[3]]),
    ),
    "collective-permute": (
        "ROOT r = f32[2,4] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}", ROWS,
        np.concatenate([0 * X[:2], X[:6]]),
    ),
    "started and waited for": (
        "s = (f32[2,4], f32[2,4], u32[], u32[]) collective-permute-start(x), channel_id=1, "
        "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}\nd = f32[2,4] collective-permute-done(s)\n"
        f"g = (f32[2,4], f32[8,4]) all-gather-start(d), {ALL}, dimensions={{0}}\n"
        f"h = f32[8,4] all-gather-done(g)\nk = f32[8,4] all-reduce-start(h), {ALL}, to_apply=add\n"
        "ROOT r = f32[8,4] all-reduce-done(k)",
        WHOLE, 4 * np.roll(X, 2, 0),
    ),
    "which partition": (
        "p = u32[] partition-id()\nt = s32[4] constant({3, 2, 1, 0})\n"
        "o = s32[1] dynamic-slice(t, p), dynamic_slice_sizes={1}\nf = f32[1] convert(o)\n"
        "b = f32[2,4] broadcast(f), dimensions={}\nf1 = f32[] reshape(f)\n"
        "c = f32[2,4] broadcast(f1), dimensions={}\nROOT r = f32[2,4] multiply(x, c)",
        ROWS, X * np.repeat([3, 2, 1, 0], 2)[:, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_exchange_is_its_definition(name: str) -> None:
    """On float64, of an array cut into four."""
    entry, out, wanted = CASES[name]
    (found,) = run(f"x = f32[2,4] parameter(0)\n{entry}", [ROWS], [out], X)
    np.testing.assert_allclose(found, wanted)


def test_what_is_started_in_one_fusion_and_ended_in_another() -> None:
    """As libtpu writes it, each fusion with a clone of the exchange; clones that are not alike are no program."""
    config = 'backend_config={"async_collective_fusion_config":{"flag_start":"2"}}'
    clone = f"  g = f32[8,4] all-gather(p), {ALL}, dimensions={{0}}, {config}\n"
    before = (
        f"start {{\n  p = f32[2,4] parameter(0)\n{clone}  ROOT s = (f32[2,4], f32[8,4], s32[2], u32[]) "
        'custom-call(g), custom_call_target="AsyncCollectiveStart"\n}\n'
        f"done {{\n  p = f32[2,4] parameter(0)\n  b = f32[8,4] parameter(1)\n{clone}  c = s32[2] parameter(2)\n"
        '  ROOT d = f32[8,4] custom-call(p, b, g, c), custom_call_target="AsyncCollectiveDone"\n}\n'
    )
    entry = (
        "x = f32[2,4] parameter(0)\ns = (f32[2,4], f32[8,4], s32[2], u32[]) fusion(x), kind=kCustom, calls=start\n"
        "e0 = f32[2,4] get-tuple-element(s), index=0\ne1 = f32[8,4] get-tuple-element(s), index=1\n"
        "e2 = s32[2] get-tuple-element(s), index=2\n"
        "ROOT d = f32[8,4] fusion(e0, e1, e2), kind=kCustom, calls=done"
    )  # fmt: skip
    np.testing.assert_allclose(run(entry, [ROWS], [WHOLE], X, before=before)[0], X)
    at = before.rindex("{{0,1,2,3}}")
    with pytest.raises(LayoutError, match="channel 1"):
        run(entry, [ROWS], [WHOLE], X, before=f"{before[:at]}{{{{1,0,2,3}}}}{before[at + 11 :]}")


def test_a_group_counts_replicas_or_partitions() -> None:
    """Two replicas of two partitions: without a channel over replicas, with one over partitions."""
    head = HEAD.replace("num_partitions=4", "replica_count=2, num_partitions=2")
    entry = "x = f32[2,4] parameter(0)\nROOT r = f32[2,4] all-reduce(x), replica_groups={{0,1}}, to_apply=add"
    columns = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
    (found,) = run(entry, [ROWS], [columns], X, head=head)
    np.testing.assert_allclose(found, np.concatenate([PARTS[0] + PARTS[2], PARTS[1] + PARTS[3]]))
    (found,) = run(entry.replace("x), ", "x), channel_id=1, "), [ROWS], [WHOLE], X, head=head)
    np.testing.assert_allclose(found, PARTS.sum(0))
    which = "x = f32[2,4] parameter(0)\nq = u32[] replica-id()\nf = f32[] convert(q)\n"
    which += "b = f32[2,4] broadcast(f), dimensions={}\n"
    (found,) = run(f"{which}ROOT r = f32[2,4] add(x, b)", [ROWS], [ROWS], X, head=head)
    np.testing.assert_allclose(found, X + np.repeat([0, 0, 1, 1], 2)[:, None])


def test_what_devices_should_hold_alike_and_do_not() -> None:
    """A result that its sharding says is the same everywhere: both devices and the element."""
    with pytest.raises(Apart, match=r"the same on device 0 and device 1, and \[0, 0\] differs"):
        run("ROOT x = f32[2,4] parameter(0)", [ROWS], [WHOLE], X)


def test_what_is_not_modelled_is_refused() -> None:
    """Groups that leave a device out, another reduction, exchanges of what each device may skip."""
    for entry in (
        f"ROOT r = f32[2,4] all-reduce(x), {over('{{0,1}}')}, to_apply=add",
        f"ROOT r = f32[2,4] all-reduce(x), {ALL}, to_apply=twice",
        "ROOT r = f32[2,4] ragged-all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}",
    ):
        with pytest.raises(NotModelled):
            run(
                f"x = f32[2,4] parameter(0)\n{entry}", [ROWS], [WHOLE], X,
                before="twice { x = f32[] parameter(0) y = f32[] parameter(1) z = f32[] add(x, x) "
                "ROOT w = f32[] add(z, y) }",
            )  # fmt: skip


@pytest.mark.parametrize("text", ["", "{maximal device=1}", "{devices=[2,1]<=[2]}", "{devices=[4]<=[4]}", "{manual}"])
def test_a_sharding_that_does_not_say_who_holds_what(text: str) -> None:
    """An error with the sharding."""
    with pytest.raises(LayoutError, match="the sharding"):
        run("ROOT x = f32[2,4] parameter(0)", [text], [WHOLE], X)
