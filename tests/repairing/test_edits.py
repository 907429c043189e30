"""Edits of a source text: each is Python again, changes one place, and the right one is among the first."""

from __future__ import annotations

import ast

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.repairing.edits import Edit, edits, joined, wrapped
from layoutproof.repairing.source import parameters_of, reached, source_of

KERNEL = '''"""Doubles."""
from jax.experimental import pallas as pl

ROWS = 8


def other(x):
    return x + 17


def body(x_ref, o_ref, acc):
    """Adds."""
    acc[...] += x_ref[...] * 2

    @pl.when(pl.program_id(1) == 0)
    def _():
        o_ref[...] = acc[...]


def double(x, n: int = 4):
    copy = begin(x, x.shape[:1])
    copy.start()
    return pl.pallas_call(
        body, grid=(n // ROWS, 2), in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        compiler_params={"dimension_semantics": ("parallel", "arbitrary")},
    )(x)
'''


def made(name: str = "double", lines: tuple[int, ...] = (), kinds: tuple[str, ...] = ()) -> list[Edit]:
    return edits(source_of(KERNEL), name, lines, kinds)


def after(old: str, new: str) -> str:
    assert KERNEL.count(old) == 1
    return KERNEL.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lambda i, j: (i, j)", "lambda i, j: (j, i)"),
        ("lambda i, j: (i, j)", "lambda i, j: (i, 0)"),
        ("n // ROWS", "-(-(n) // (ROWS))"),
        ("lambda i, j: (i, j)", "lambda i, j: (j[i], j)"),
        ("shape[:1]", "shape[-(1):]"),
        ("ROWS = 8", "ROWS = 9"),
        ('("parallel",', '("arbitrary",'),
        ("(1) == 0", "(1) != 0"),
        ("(1) == 0", "(1) == 1"),
        ("x_ref[...] * 2", "x_ref[...]"),
        ("acc[...] +=", "acc[...] ="),
        ("    copy.start()\n", "    copy.start()\n    copy.wait()\n"),
        (
            "    acc[...] += x_ref",
            "    @pl.when(pl.program_id(2) == 0)\n    def _():\n        acc[...] = jnp.zeros_like(acc)\n\n"
            "    acc[...] += x_ref",
        ),
    ],
)
def test_what_is_mostly_wrong_is_among_them(old: str, new: str) -> None:
    """Each of these faults is undone by one edit."""
    assert after(old, new) in {edit.of(KERNEL) for edit in made()}


def test_every_edit_is_python_and_another_text() -> None:
    """No edit twice, none that changes nothing, none of a type or of a docstring."""
    found = made()
    texts = [edit.of(KERNEL) for edit in found]
    assert len(set(texts)) == len(texts) > 80
    plain = ast.dump(ast.parse(KERNEL))
    same = [edit for edit, text in zip(found, texts, strict=True) if ast.dump(ast.parse(text)) == plain]
    assert not same
    assert not any('"""Adds."""' not in text or "n: int" not in text for text in texts)


def test_only_what_the_function_reaches() -> None:
    """A function beside it is left alone; a name that the file does not define is looked for in all of it."""
    assert all("return x + 17" in edit.of(KERNEL) for edit in made())
    assert any("return x + 18" in edit.of(KERNEL) for edit in made("imported"))
    names = [getattr(one, "name", "ROWS") for one in reached(source_of(KERNEL), "double")]
    assert names == ["ROWS", "body", "double"]


def test_the_line_that_is_named_comes_first() -> None:
    """Then the kinds of edits that mostly repair such a fault."""
    assert made(lines=(13,))[0].line == 13
    assert made(lines=(13,), kinds=("zero",))[0].words.startswith("line 13: acc[...] = jnp.zeros_like(acc)")
    assert made(kinds=("order",))[0].of(KERNEL) == after('("parallel",', '("arbitrary",')


BLOCKS = """
def body(x, o, acc, top):
    @pl.when({})
    def _():
        acc[...] = jnp.zeros_like(acc)
        top[...] = x[...]

    acc[...] += x[...]
    top[...] = jnp.maximum(top[...], x[...])

    @plgpu.when(last)
    def _():
        o[...] = acc[...]
"""


@pytest.mark.parametrize("condition", ["pl.program_id(1) == 0", "k > 3", "first"])
def test_a_block_that_begins_a_sum_is_changed_and_not_doubled(condition: str) -> None:
    """Its condition is that of the first step of each axis; the block that reads the sum is no such block."""
    text = BLOCKS.format(condition)
    found = {edit.of(text) for edit in edits(source_of(text), "body", kinds=("zero",)) if edit.kind == "zero"}
    assert found == {BLOCKS.format(f"pl.program_id({axis}) == 0") for axis in range(3)} - {text}
    without = text.replace("        acc[...] = jnp.zeros_like(acc)\n", "")
    words = [edit.words for edit in edits(source_of(without), "body") if "acc[...] = jnp.zeros_like" in edit.words]
    assert len(words) == 4


def test_masks() -> None:
    """One of each load of a parameter; several are one edit."""
    source = source_of(KERNEL)
    assert parameters_of(source, "body", 0) == ["x_ref"]
    (mask,) = wrapped(source, "double", "x_ref", "at < 9")
    assert mask.of(KERNEL) == after("x_ref[...] * 2", "jnp.where(at < 9, x_ref[...], 0) * 2")
    whole = joined(KERNEL, [mask, Edit(KERNEL.index("ROWS = 8"), KERNEL.index("ROWS = 8") + 8, "ROWS = 4", 4, "rows")])
    assert whole.of(KERNEL) == mask.of(KERNEL).replace("ROWS = 8", "ROWS = 4")


def test_columns_count_bytes() -> None:
    """A text beyond ASCII is edited where it should be."""
    text = 'def f(n):\n    return "é", n < 3\n'
    assert 'def f(n):\n    return "é", n <= 3\n' in {edit.of(text) for edit in edits(source_of(text), "f")}


def test_no_python() -> None:
    """The line is named."""
    with pytest.raises(LayoutError, match="not Python") as error:
        source_of("def f(:\n", "f.py")
    assert (error.value.file, error.value.line) == ("f.py", 1)
