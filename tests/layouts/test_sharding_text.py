"""Sharding text: reads and prints as XLA does, refuses what has no meaning with the column, accepts what it printed."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.layouts.sharding import NamedSharding, TileSharding, looks_like, parse, read
from layoutproof.layouts.sharding.mesh import to_tiles
from layoutproof.layouts.sharding.tiles import listed
from tests.layouts import shardings_at_random as at_random
from tests.versions import jaxlib_measured

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("sharding_in_jaxlib.py")


def ask_jaxlib(texts: list[str]) -> list[dict[str, Any] | None]:
    """What jaxlib's own parser makes of each text; skips where it is not installed."""
    if importlib.util.find_spec("jaxlib") is None:
        pytest.skip("jaxlib is not installed, so its sharding parser cannot be asked")
    run = subprocess.run([sys.executable, str(CHILD)], input=json.dumps(texts), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    answers: list[dict[str, Any] | None] = json.loads(run.stdout)
    return answers


def ours(text: str, mode: str) -> Any:
    try:
        return read(text, mode)
    except lp.LayoutError as error:
        return error


@jaxlib_measured
def test_random_shardings_print_as_in_jaxlib() -> None:
    """Sound random texts: printed text, V2 form of a mesh and device of every tile are jaxlib's, in both modes."""
    rng = random.Random(20260922)
    texts = [rng.choice([at_random.tiled, at_random.named])(rng) for _ in range(1500)]
    accepted = 0
    for text, answer in zip(texts, ask_jaxlib(texts), strict=True):
        found = ours(text, "xla")
        if answer is None:
            assert isinstance(found, lp.LayoutError), text
            continue
        accepted += 1
        assert str(found) == answer["printed"], text
        tiles = to_tiles(found) if isinstance(found, NamedSharding) else found
        if "tiles" in answer:
            assert str(tiles) == answer["tiles"], text
        if "devices" in answer:
            assert list(listed(tiles.tiles)) == answer["devices"], text
        strict = ours(text, "strict")
        assert str(strict) == str(found), text
        assert strict == found
    assert accepted > 1400


@jaxlib_measured
def test_spoiled_shardings_are_judged_as_in_jaxlib() -> None:
    """One character wrong: mode "xla" takes and prints what jaxlib does, save the four garbage readings named here."""
    rng = random.Random(7)
    texts = [at_random.spoiled(rng, rng.choice([at_random.tiled, at_random.named])(rng)) for _ in range(1500)]
    # a list of too many devices makes jaxlib write past an array; what it says after that is worth nothing
    texts = [t for t in texts if "devices are listed" not in str(ours(t, "strict"))]
    accepted = refused = 0
    for text, answer in zip(texts, ask_jaxlib(texts), strict=True):
        found = ours(text, "xla")
        if answer is None:
            assert isinstance(found, lp.LayoutError), text
            refused += 1
        elif isinstance(found, lp.LayoutError):
            # jaxlib prints these, and aborts or reads foreign memory as soon as a device is asked for
            garbage = ("tiles but <=[", "devices but device_ids", "dimensions and the reshape has")
            garbage += ("is not a permutation of 0..",)
            assert any(part in found.problem for part in garbage), (text, str(found))
        else:
            accepted += 1
            assert str(found) == answer["printed"], text
    assert accepted > 50
    assert refused > 500


def test_what_is_printed_reads_back() -> None:
    """`parse(str(s)) == s`, for random shardings of all forms and for tuples of them.

    XLA's own normal form has one exception, and so has ours: of `[1,4,1]` with {unreduced, replicated} it drops the
    size 1 and prints `[1,4] .. {unreduced}`, which it reads as {unreduced}.
    """
    rng = random.Random(3)
    exceptions = 0
    for _ in range(500):
        texts = [rng.choice([at_random.tiled, at_random.named])(rng) for _ in range(rng.randint(1, 7))]
        single = [found for text in texts if not isinstance(found := ours(text, "strict"), lp.LayoutError)]
        for found in single:
            again = parse(str(found))
            if again != found:
                exceptions += 1
                assert (again.kind,) == found.subgroups
                assert set(found.tiles.dims[:-1]) <= {1}
            assert parse(str(again)) == again
        single = [parse(str(found)) for found in single]
        if single:
            tuple_ = parse("{" + ", ".join(map(str, single)) + "}")
            assert parse(str(tuple_)) == tuple_
    assert exceptions < 40


def test_new_forms_place_elements() -> None:
    """How unreduced values combine moves none of them; a mesh without axes is one device, which has everything."""
    both = [{"device": k, "local_i": 1, "local_j": 2} for k in (0, 1)]
    for text in ("{unreduced=max} on 2 devices", "{mesh['x'=2], unreduced=min}", "{mesh['x'=2], [{}, {}]}"):
        assert lp.locate(f"f32[4,4] sharded {text}", (1, 2)) == both
    for device, text in ((5, "device_ids=(5), [{}, {}]"), (5, "device_ids=(5), replicated"), (0, "[{}, {}]")):
        assert lp.locate(f"f32[4,4] sharded {{mesh[], {text}}}", (1, 2)) == [{**both[0], "device": device}]
    assert parse("{unreduced=max}") != parse("{unreduced}")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (' { devices=[2, 2]<= [2,2]T (1,0) /* c */ } ', "{devices=[2,2]<=[2,2]T(1,0)}"),
        ('{replicated metadata={op_name="a}" source_line=3}}', '{replicated metadata={op_name="a}" source_line=3}}'),
        (
            '{devices=[2]0,1 metadata={{op_name="a"}, {op_type="b"}} shard_as 5}',
            '{devices=[2]0,1 shard_as 5 metadata={{op_name="a"}, {op_type="b"}}}',
        ),
        ("{shard_like -1 manual}", "{manual shard_like -1}"),
        ("{{replicated},{manual},{unknown},{unreduced},{maximal device=1},{replicated}}",
         "{{replicated}, {manual}, {unknown}, {unreduced}, {maximal device=1}, /*index=5*/{replicated}}"),
        ("{mesh['x'=2], [{}], unreduced=max{'x'}}", "{mesh['x'=2], [{}], unreduced=max{'x'}}"),
        ("{mesh['x'=2], [], unreduced=max{'x'}}", "{mesh['x'=2], unreduced=max}"),
        ("{unreduced=max}", "{unreduced=max}"),
        ("{shard_as 3 unreduced=min}", "{unreduced=min shard_as 3}"),
        ("{mesh[], []}", "{mesh[], replicated}"),
        ("{mesh[], device_ids=(5), [{}, {}]}", "{maximal_mesh[device_id=5]}"),
        ("{mesh[], device_ids=([1]), replicated}", "{maximal_mesh[device_id=0]}"),
        ("{mesh['x'=2], [{'x'}], metadata={op_name=\"q\"}}", "{mesh['x'=2], [{'x'}], metadata={{op_name=\"q\"}}}"),
        ("{mesh['x'=2,'y'=1], [], manual={'x'}}", "{mesh['x'=2,'y'=1], manual}"),
        ("{maximal_mesh[device_id=5]}", "{maximal_mesh[device_id=5]}"),
    ],
)  # fmt: skip
def test_prints(text: str, printed: str) -> None:
    """Spaces, comments, order of parts and metadata are normalised; metadata does not make shardings differ."""
    found = parse(text)
    assert str(found) == printed
    assert parse(printed) == found


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("{devices=[2]0,0}", "device 0 is listed twice", 2),
        ("{devices=[2]0,-1}", "device -1 is negative", 2),
        ("{devices=[2]0,1,2}", "has 2 tiles but 3 devices are listed", 2),
        ("{devices=[2,2]<=[2,2]T(1,1)}", "T(1,1) is not a permutation of 0..1", 24),
        ("{devices=[2,2]<=[2,2]T(2,0)}", "names dimension 2, but the reshape has 0..1", 24),
        ("{devices=[2,2]<=[5]}", "has 4 tiles but <=[5] numbers 5 devices", 2),
        ("{devices=[2,2]<=[2,2]}", "needs one, but found '}'", 22),
        ("{devices=[2,0]<=[0]}", "every dimension has at least 1 tile", 2),
        ("{devices=[1,1]<=[1]}", "has a single tile", 2),
        ("{devices=[2]0,1 last_tile_dims={manual} last_tile_dim_replicate}", "exclude each other", 2),
        ("{devices=[2]0,1 last_tile_dims={manual,replicated}}", "2 subgroups but only 1 tile dimensions", 2),
        ("{devices=[2]0,1 last_tile_dims={unknown}}", "expected a kind of subgroup", 33),
        ("{replicated manual}", "contradict each other", 2),
        ("{replicated replicated}", "replicated is given twice", 13),
        ("{maximal}", "has one device, 0 are given", 2),
        ("{Replicated}", "'Replicated' is no part of a sharding", 2),
        ("{devices=[2]0,1", "but the text ends", 16),
        ("{devices=[2]0,1} x", "unexpected 'x' after the sharding", 18),
        ("{{replicated}, {{replicated}}}", "expected devices=", 17),
        ('{replicated metadata={name="x"}}', "expected metadata, one of", 23),
        ("{mesh['a'=2,'a'=2], [{'a'}]}", "two axes 'a'", 2),
        ("{mesh['a'=2], [{'z'}]}", "no axis 'z'; its axes: a", 17),
        ("{mesh['a'=2], [{'a'}, {'a'}]}", "overlap: each axis may be used once", 2),
        ("{mesh['a'=4], [{'a'}, {'a':(2)2}]}", "'a':(2)2 and 'a' overlap", 2),
        ("{mesh['a'=4], [{'a':(2)2}, {'a'}]}", "'a' and 'a':(2)2 overlap", 2),
        ("{mesh['a'=8], [{'a':(1)4}, {'a':(2)2}]}", "overlap: each axis may be used once", 2),
        ("{mesh['a'=4], [{'a':(3)2}]}", "'a':(3)2 is no part of 'a' of size 4", 2),
        ("{mesh['a'=4], [{'a':(1)2, 'a':(2)2}]}", "must be written as one", 2),
        ("{mesh['a'=2,'b'=2], [{}], replicated={'b','a'}}", "in the order of the mesh", 2),
        ("{mesh['a'=2], device_ids=(0,1), [{'a'}]}", "which XLA wants left out", 2),
        ("{mesh['a'=2], device_ids=(0,2), [{'a'}]}", "must be 0..1 in some order", 2),
        ("{mesh['a'=4], device_ids=([2,2]T(1,1)), [{'a'}]}", "is not a permutation", 34),
        ("{mesh['a'=4], device_ids=([2,3]T(1,0)), [{'a'}]}", "has 4 devices but device_ids 6", 15),
        ("{mesh[], manual}", "a mesh without axes", 10),
    ],
)  # fmt: skip
def test_refused(text: str, problem: str, column: int) -> None:
    """Each text is refused for its reason at its column, never by a crash."""
    with pytest.raises(lp.LayoutError) as caught:
        parse(text)
    assert problem in caught.value.problem
    assert caught.value.column == column


def test_unsound_assignments_read_as_in_xla_but_place_nothing() -> None:
    """Mode "xla" reads and prints what XLA's parser takes; the map refuses it."""
    found = parse("{devices=[2]0,0}", "xla")
    assert str(found) == "{devices=[2]0,0}"
    assert isinstance(found, TileSharding)
    with pytest.raises(lp.LayoutError, match="twice"):
        read({"sharding": found, "shape": [4]}, "xla")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{devices=[2]0,1}", True),
        ("  {replicated}", True),
        ("f32[4]{0} sharded {replicated} on 2 devices", True),
        ("(split(0), broadcast) on mesh['x'=2,'y'=2]", True),
        ("(S(0), B)", True),
        ("f32[4]{0}", False),
        ("(f32[4]{0}, s32[])", False),
        ("(s32[2], pred[])", False),
        ("(4,8):(8,1)", False),
    ],
)
def test_looks_like(text: str, expected: bool) -> None:
    """Shardings are told from shapes, tuples of shapes and CuTe layouts."""
    assert looks_like(text) is expected
    if expected and "on" in text:
        assert lp.read_layout(text) == read(text)


def test_long_text_and_many_devices() -> None:
    """A million devices as an iota are no work; a text of a million characters is refused."""
    assert str(parse("{devices=[1024,1024]<=[1048576]}")) == "{devices=[1024,1024]<=[1048576]}"
    array = read("f32[4096,4096] sharded {devices=[1024,65536]<=[65536,1024]T(1,0)}")
    assert array.index_map().at((4095, 4095)) == (4095 * 1024 + 1023, 3, 0)
    with pytest.raises(lp.LayoutError, match="at most 1,000,000"):
        parse("{" + " " * 1_000_000 + "}")


@pytest.mark.parametrize(
    "text",
    [
        "f32[8,8,8] sharded {devices=[2,2,2]<=[2,2,2]T(0,1,0)}",
        "f32[8,8,8] sharded {devices=[2,2,2]<=[2,2,2]T(1,2,1)}",
        "f32[8,8,8] sharded {devices=[1,1,2]<=[1,1,2]T(1,1,2)}",
        "f32[8,8,8] sharded {devices=[2,2,2]<=[2,2,2]T(0,0,0)}",
    ],
)
def test_an_order_that_names_a_dimension_twice_is_refused(text: str) -> None:
    """XLA aborts on it or takes another order (jaxlib 0.10.2: [2,2]T(0,0) as T(1,0)); the twin with each dimension once
    is read."""
    with pytest.raises(lp.LayoutError, match=r"is not a permutation of 0\.\.2: XLA aborts on it, or"):
        lp.read_layout(text)
    with pytest.raises(lp.LayoutError, match="is not a permutation"):
        parse(text.partition("sharded ")[2], "xla")
    assert lp.read_layout("f32[8,8,8] sharded {devices=[2,2,2]<=[2,2,2]T(0,2,1)}")
