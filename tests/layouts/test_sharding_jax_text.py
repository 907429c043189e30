"""Shardings as JAX prints them: what they stand for, in every place that takes a layout's text, and errors by name."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from math import prod
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.layouts.sharding import read
from layoutproof.layouts.sharding.jax_text import spec_of
from tests.cli.in_one_process import commands
from tests.layouts.test_sharding_place import places

MESH = "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
ABSTRACT = (
    "AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Auto), device_kind=TPU v5 lite, num_cores=1, platform=tpu)"
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("P('x', None) on x=2,y=4", "{mesh['x'=2,'y'=4], [{'x'}, {}]}"),
        ("P('x',) on x=2, y=4", "{mesh['x'=2,'y'=4], [{'x'}]}"),
        ("P() on x=2,y=4", "{mesh['x'=2,'y'=4], replicated}"),
        ("P(None,) on x=2,y=4", "{mesh['x'=2,'y'=4], [{}]}"),
        ("P(('y', 'x'), None) on x=2,y=4", "{mesh['x'=2,'y'=4], [{'y', 'x'}, {}]}"),
        ('PartitionSpec("x") on x=2,y=4', "{mesh['x'=2,'y'=4], [{'x'}]}"),
        (f"P('x', None) on {MESH}", "{mesh['x'=2,'y'=4], [{'x'}, {}]}"),
        (f"P('x', None) on {ABSTRACT}", "{mesh['x'=2,'y'=4], [{'x'}, {}]}"),
        (
            "P(None, 'y') on Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto))",
            "{mesh['x'=2,'y'=4], [{}, {'y'}]}",
        ),
        (
            f"NamedSharding(mesh={MESH}, spec=P('x',), memory_kind=unpinned_host)",
            "{mesh['x'=2,'y'=4], [{'x'}]}",
        ),
        (f"NamedSharding(mesh={ABSTRACT}, spec=P('x', None))", "{mesh['x'=2,'y'=4], [{'x'}, {}]}"),
        ("P('x', unreduced={'y'}) on x=2,y=4", "{mesh['x'=2,'y'=4], [{'x'}], unreduced={'y'}}"),
        ("P('x', unreduced={'y'}, unreduced_kind=sum) on x=2,y=4", "{mesh['x'=2,'y'=4], [{'x'}], unreduced={'y'}}"),
        ("P('x', unreduced={'y'}, unreduced_kind=max) on x=2,y=4", "{mesh['x'=2,'y'=4], [{'x'}], unreduced=max{'y'}}"),
        ("P('x', reduced={'y'}) on x=2,y=4", "{mesh['x'=2,'y'=4], [{'x'}]}"),
        (
            "P('x') on Mesh('x': 2, 'y': 4, axis_types=(Auto, Manual))",
            "{mesh['x'=2,'y'=4], [{'x'}], manual={'y'}}",
        ),
        ("P('x') on mesh['x'=2,'y'=2], device_ids=(3,2,1,0)", "{mesh['x'=2,'y'=2], device_ids=(3,2,1,0), [{'x'}]}"),
        ("f32[64,128] sharded P('x') on x=2,y=4", "f32[64,128] sharded {mesh['x'=2,'y'=4], [{'x'}, {}]}"),
        (
            "f32[8]{0:T(128)} sharded P('x') on x=2 on devices 5,7",
            "f32[8]{0:T(128)} sharded {mesh['x'=2], [{'x'}]} on devices 5,7",
        ),
        ("f32[] sharded P() on Mesh(, axis_types=())", "f32[] sharded {mesh[], replicated}"),
    ],
)
def test_reads(text: str, printed: str) -> None:
    """Each spelling of JAX's is the mesh form, alone and in a mapping, and reads back from that."""
    found = lp.read_layout(text)
    assert str(found) == printed
    assert lp.read_layout(printed) == found
    if " sharded " not in text:
        assert lp.read_layout({"sharding": text}) == found == read({"sharding": text})


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("P(UNCONSTRAINED, 'x') on x=2", "UNCONSTRAINED says nothing of where elements are", 3),
        ("P('x', P.UNCONSTRAINED) on x=2", "UNCONSTRAINED says nothing of where elements are", 8),
        ("P('x')", "expected the mesh, as in 'P('x') on x=2,y=4', but the text ends", 7),
        ("P('x') on y=2", "the mesh has no axis 'x'; its axes are y", 1),
        ("P('dtaa') on data=2", "the mesh has no axis 'dtaa'; its axes are data; did you mean 'data'?", 1),
        ("P('x', 'x') on x=2", "each axis may be used once", 1),
        ("P('x', reduced={'x'}) on x=2", "the axis 'x' is used twice", 1),
        ("P('x', unreduced={'x'}) on x=2", "each axis may be used once", 1),
        ("P(x) on x=2", "an axis is written in quotes: 'x', or None", 3),
        ("P(3) on x=2", "expected None, an axis such as 'x', or several such as ('x', 'y'), but found '3'", 3),
        ("P('x' on x=2", "expected ) after the entries, or a comma, but found 'on'", 7),
        ("P('x', unreduced={'y'}, None) on x=2,y=2", "entries of dimensions come first", 25),
        ("P('x', unreduced={'y'}, unreduced={'y'}) on x=2,y=2", "unreduced is given twice", 25),
        ("P('x', unreduced={'y'}, unreduced_kind=xor) on x=2,y=2", "expected sum, max or min, but found 'xor'", 40),
        ("P('x') on x=0", "a mesh axis has at least 1 device", 11),
        ("P('x') on x=2,x=2", "the mesh has two axes 'x'", 11),
        ("P('x') on 8", "expected an axis and its size, as in x=2,y=4, but found '8'", 11),
        ("P('x') on x=2 and more", "unexpected 'and' after the sharding", 15),
        ("P('x') on Mesh('x': 2, axis_types=(Auto, Auto))", "1 axes, 1 sizes and 2 types", 11),
        ("P('x') on Mesh('x': 2, axis_types=(Automatic,))", "expected Auto, Explicit or Manual", 36),
        ("NamedSharding(spec=P('x'))", "expected mesh= and spec=", 26),
        ("NamedSharding(mesh=x, spec=P('x'))", "expected Mesh(..) or AbstractMesh(..), but found 'x'", 20),
        ("f32[8] sharded P('x') on Mesh('x': 2, axis_types=(Manual,))", "each axis may be used once", 16),
    ],
)
def test_refuses(text: str, problem: str, column: int) -> None:
    """What is wrong is named, with the column; UNCONSTRAINED by its name."""
    with pytest.raises(lp.LayoutError) as error:
        lp.read_layout(text)
    assert problem in error.value.problem
    assert error.value.column == column


def test_a_spec_of_more_entries_than_dimensions() -> None:
    """A specification may leave out trailing dimensions, and have none too many."""
    with pytest.raises(lp.LayoutError, match="2 entries for an array with 1 dimensions"):
        lp.read_layout("f32[8] sharded P(None, 'x') on x=2")


def by_definition(sizes: dict[str, int], entries: list[tuple[str, ...]], dims: list[int]) -> dict[object, object]:
    """Where JAX's documentation puts elements: the axes of an entry split its dimension, the first one outermost."""
    found = defaultdict(set)
    for device, numbers in enumerate(itertools.product(*map(range, sizes.values()))):
        at = dict(zip(sizes, numbers, strict=True))
        parts = []
        for extent, axes in zip(dims, [*entries, *[()] * (len(dims) - len(entries))], strict=True):
            tile = 0
            for axis in axes:
                tile = tile * sizes[axis] + at[axis]
            step = extent // prod(sizes[axis] for axis in axes)
            parts.append(range(tile * step, (tile + 1) * step))
        for index in itertools.product(*parts):
            found[index].add((device, *(i - part.start for i, part in zip(index, parts, strict=True))))
    return dict(found)


@pytest.mark.parametrize("seed", range(40))
def test_random_specs_by_the_definition(seed: int) -> None:
    """Random meshes and specs put every element where the definition of a partition specification does."""
    rng = random.Random(seed)
    sizes = {name: rng.choice((1, 2, 3)) for name in "xyz"[: rng.randint(1, 3)]}
    axes = rng.sample(list(sizes), rng.randint(0, len(sizes)))
    dims = [6 * rng.choice((1, 2)) if rng.random() < 0.7 else 18 for _ in range(rng.randint(1, 2))]
    entries: list[tuple[str, ...]] = [() for _ in range(rng.randint(0, len(dims)))]
    for axis in axes if entries else ():
        k = rng.randrange(len(entries))
        if dims[k] % prod(sizes[name] for name in (*entries[k], axis)) == 0:
            entries[k] = (*entries[k], axis)
    shown = [repr(e[0]) if len(e) == 1 else repr(e) if e else "None" for e in entries]
    mesh = ",".join(f"{name}={size}" for name, size in sizes.items())
    text = f"[{','.join(map(str, dims))}] sharded P({', '.join(shown)}) on {mesh}"
    assert places(lp.read_layout(text)) == by_definition(sizes, entries, dims), text


def test_every_command_takes_it(tmp_path: Path) -> None:
    """ask, show, locate and a spec file, each by the command."""
    one, other = "f32[64,128] sharded P('x', None) on x=2,y=4", "f32[64,128] sharded P('x') on x=2,y=4"
    (tmp_path / "shardings.yaml").write_text(
        f'checks:\n  - same_map: ["{one}", "{other}"]\n  - even: "f32[7] sharded P(\'x\') on x=2"\n'
    )
    answers, _ = commands(
        tmp_path,
        ["ask", "same_map", one, other],
        ["ask", "same_map", one, "f32[64,128] sharded P(None, 'x') on x=2,y=4"],
        ["show", "f32[8,8] sharded P('x', 'y') on x=2,y=4"],
        ["locate", one, "33,5", "--json"],
        ["check", "shardings.yaml"],
        ["ask", "even", "f32[8] sharded P(UNCONSTRAINED) on x=2"],
    )
    assert [answer.code for answer in answers] == [0, 1, 0, 0, 1, 2]
    assert "device" in answers[2].out
    assert '"device": 4' in answers[3].out
    assert "1 of 2 claims as stated" in answers[4].out
    assert "UNCONSTRAINED says nothing of where elements are" in answers[5].err


def test_a_spec_alone() -> None:
    """`P(..)` without a mesh, as `compile --in` takes it, and what follows it is refused."""
    assert spec_of("PartitionSpec(('x', 'y'), None)").entries == (("x", "y"), None)
    with pytest.raises(lp.LayoutError, match="unexpected 'on' after the partition specification"):
        spec_of("P('x') on x=2")
