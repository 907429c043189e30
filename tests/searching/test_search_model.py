"""Search files and their published schema: examples satisfy it, and reader and schema refuse the same mistakes."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.kernel import kernel_text
from layoutproof.searching import search_model
from layoutproof.searching.file import problem_of
from layoutproof.searching.search_model import LARGEST, KernelKeys, OperandKeys, ScratchKeys
from layoutproof.specs import spec_model
from layoutproof.specs.positions import read_file, read_yaml
from layoutproof.specs.validation import keys_of
from tests.said import stretch as stretch_of
from tests.said import words as words_of
from tests.schema_places import places

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = jsonschema.Draft202012Validator(search_model.json_schema())
KERNEL = """\
target: v5e
kernel:
  grid: ["cdiv(M, bm)"]
  semantics: [parallel]
  inputs: [{name: x, array: "f32[M,N]", block: [bm, N], index: "i -> (i, 0)"}]
  outputs: [{name: o, array: "f32[M,N]", block: [bm, N], index: "i -> (i, 0)"}]
sizes: {M: 64, N: 128}
tune: {bm: {from: 8, multiple_of: 8}}
headroom: 0%
"""
TRACE = """\
target: v5e
trace: jax.experimental.pallas.ops.tpu.matmul:matmul
sizes: {M: 256}
args: ["bf16[M,M]", "bf16[M,M]"]
kwargs: {block_shape: "(bm, 256)", block_k: 256}
tune: {bm: [128, 256]}
"""
ARRAYS = """\
target: v5e
sizes: {b: 16, h: 40}
layouts: {q: "bf16[b,h]"}
mesh: {x: 2}
shardings: {w: "f32[b,128]"}
require: [even]
"""
HUGE = 10**39


def documents() -> list[tuple[str, Any]]:
    """Every search file in the repository, and those that its pages and programs write out."""
    found = [(path.name, read_file(path).plain()) for path in sorted((ROOT / "specs" / "search").glob("*.yaml"))]
    for page in ("README.md", "CONTRIBUTING.md"):
        for k, text in enumerate(re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)):
            said = read_yaml(text).plain()
            if isinstance(said, dict) and "search" in said:
                found.append((f"{page}-{k}", said))
    return found


DOCUMENTS = documents()


@pytest.mark.fast
@pytest.mark.parametrize(("name", "said"), DOCUMENTS, ids=[name for name, _ in DOCUMENTS])
def test_every_example_satisfies_the_schema(name: str, said: Any) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(said)] == []


@pytest.mark.fast
def test_there_are_examples_of_every_kind() -> None:
    """What is validated above is not nothing; the small files below are right before they are spoiled."""
    assert len(DOCUMENTS) >= 16
    for text in (KERNEL, TRACE, ARRAYS):
        assert VALIDATOR.is_valid(read_yaml(text).plain())
        # a function is traced to be read
        if text != TRACE or importlib.util.find_spec("jax") is not None:
            assert problem_of(read_yaml(text), "s.yaml") is not None


def _expected(key: str, wanted: str, found: str) -> str:
    """What is said of a value of a key."""
    return f"'{key}': " + words_of("specs.expected", wanted=wanted, found=found)


def _choice(key: str, known: str, found: str) -> str:
    """What is said of a word that is none of those."""
    return words_of("kernel.part_choice", what=key, known=known, value=found, near="")


# (file, what is there, what stands instead, line:column, words, whether the schema can say it)
PLANTED = [
    (
        KERNEL,
        "headroom: 0%",
        "hedroom: 0%",
        "9:1",
        "unknown key 'hedroom'" + words_of("core.did_you_mean", name="headroom"),
        True,
    ),
    (
        KERNEL,
        "block: [bm, N], ",
        "blok: [bm, N], ",
        "5:41",
        "unknown key 'blok'" + words_of("core.did_you_mean", name="block"),
        True,
    ),
    (KERNEL, "multiple_of: 8", "multiples_of: 8", "8:22", "did you mean 'multiple_of'?", True),
    (KERNEL, "headroom: 0%", "headroom: [1]", "9:11", "headroom is a percentage", True),
    (KERNEL, "headroom: 0%", "flops: {a: 1}", "9:8", stretch_of("searching.expression_form"), True),
    (KERNEL, "headroom: 0%", "cost: 1.5", "9:7", stretch_of("searching.expression_form"), True),
    (KERNEL, "headroom: 0%", "constraints: [true]", "9:15", stretch_of("searching.condition_form"), True),
    (KERNEL, "headroom: 0%", "vmem: 1.5", "9:7", "an amount of memory is", True),
    (KERNEL, "headroom: 0%", "vmem: 0MiB", "9:7", "an amount of memory is", False),
    (KERNEL, "headroom: 0%", "note: 3", "9:7", _expected("note", "text", "3"), True),
    (KERNEL, "M: 64", "M: '64'", "7:12", _expected("M", "a whole number", "'64'"), True),
    (KERNEL, "M: 64", "M: -64", "7:12", _expected("M", "a number of at least 1", "-64"), True),
    (KERNEL, "M: 64", "M: true", "7:12", _expected("M", "a whole number", "True"), True),
    (KERNEL, "M: 64", "M: .nan", "7:12", _expected("M", "a whole number", "nan"), True),
    (KERNEL, "M: 64", "M: 64.5", "7:12", _expected("M", "a whole number", "64.5"), True),
    (KERNEL, "M: 64", f"M: {HUGE}", "7:12", _expected("M", f"a number of at most {LARGEST}", f"{HUGE}"), True),
    (KERNEL, "M: 64", f"M: {'9' * 50}", "7:12", words_of("specs.number_length", characters=50, most=40), True),
    (KERNEL, "M: 64", "M: 64, M: 65", "7:16", words_of("specs.duplicate_key", key="M", line=7), False),
    (KERNEL, "{M: 64, N: 128}", "{}", "7:8", _expected("sizes", "at least one entry", "{}"), True),
    (KERNEL, "{M: 64, N: 128}", "5", "7:8", _expected("sizes", "a mapping", "5"), True),
    (KERNEL, "M: 64, N: 128}", "M: 64, N: 128, a b: 1}", "7:24", words_of("searching.no_name", name="a b"), True),
    (KERNEL, "{from: 8, multiple_of: 8}", "[]", "8:12", _expected("bm", "at least one entry", "[]"), True),
    (KERNEL, "{from: 8, multiple_of: 8}", "[8, true]", "8:16", _expected("bm", "a whole number", "True"), True),
    (KERNEL, "{from: 8, multiple_of: 8}", "[8, -8]", "8:16", _expected("bm", "a number of at least 1", "-8"), True),
    (KERNEL, "from: 8", "from: 64, to: 8", "8:12", "'bm': no number is in {'from': 64, 'to': 8", False),
    (KERNEL, "multiple_of: 8", "powers_of: 1", "8:33", _expected("powers_of", "a number of at least 2", "1"), True),
    (KERNEL, "multiple_of: 8", "to: .inf", "8:26", _expected("to", "a whole number", "inf"), True),
    (KERNEL, "multiple_of: 8", f"to: {2**40}", "8:12", "'bm': at most 1048576 values", False),
    (KERNEL, "headroom: 0%", "partial: mask", "9:10", "did you mean 'masked'?", True),
    (KERNEL, "[parallel]", "[paralel]", "4:15", "did you mean 'parallel'?", True),
    (KERNEL, "target: v5e\n", "", "1:1", "'target' is missing", True),
    (KERNEL, "tune: {bm: {from: 8, multiple_of: 8}}\n", "", "1:1", "'tune' is missing", True),
    (TRACE, "tune:", "arg: []\ntune:", "6:1", "unknown key 'arg'" + words_of("core.did_you_mean", name="args"), True),
    (TRACE, 'args: ["bf16[M,M]", "bf16[M,M]"]', "args: 3", "4:7", _expected("args", "a list", "3"), True),
    (TRACE, "kwargs: {", "kwargs: [{", "5:9", "'kwargs': expected a mapping", True),
    (TRACE, "tune:", "confirm: libtpu\ntune:", "6:10", _choice("confirm", "compiler", "'libtpu'"), True),
    (TRACE, "sizes: {M: 256}", "sizes: [{M: 256}, {M: 512}]", "3:8", "one set of sizes", False),
    (TRACE, "tune:", "over: sum\ntune:", "6:1", "unknown key 'over'", True),
    (
        ARRAYS,
        "require: [even]",
        "requires: [even]",
        "6:1",
        "unknown key 'requires'" + words_of("core.did_you_mean", name="require"),
        True,
    ),
    (ARRAYS, "require: [even]", "require: [evn]", "6:11", "did you mean 'even'?", True),
    (ARRAYS, "require: [even]", "order: all", "6:8", _choice("order", "each, shared", "'all'"), True),
    (ARRAYS, "{x: 2}", "{x: 0}", "4:11", _expected("x", "a number of at least 1", "0"), True),
    (ARRAYS, "{x: 2}", "{x: true}", "4:11", _expected("x", "a whole number", "True"), True),
    (ARRAYS, "{x: 2}", "{}", "4:7", _expected("mesh", "at least one entry", "{}"), True),
    (
        ARRAYS,
        "{x: 2}",
        f"{{x: {2**25}}}",
        "4:7",
        words_of("searching.too_many_devices", devices=33554432, most=16777216),
        False,
    ),
    (ARRAYS, 'q: "bf16[b,h]"', "q: 8", "3:14", stretch_of("searching.shape_form"), True),
    (
        ARRAYS,
        'q: "bf16[b,h]"',
        'q: "bf16[b,z]"',
        "3:14",
        words_of("searching.not_in_sizes", name="z", known="b, h"),
        False,
    ),
    (ARRAYS, 'layouts: {q: "bf16[b,h]"}', "layouts: {}", "3:10", "'layouts': expected at least one entry", True),
]


@pytest.mark.fast
@pytest.mark.parametrize(
    ("text", "old", "new", "place", "words", "in_schema"), PLANTED, ids=[f"{p[3]}-{p[2][:24]!a}" for p in PLANTED]
)
def test_reader_and_schema_refuse_what_is_planted(
    text: str, old: str, new: str, place: str, words: str, in_schema: bool
) -> None:
    """With the file, the line and plain words; and by the schema, where a schema can say it."""
    assert text.count(old) == 1 or new.startswith(("blok", "confirm", "over", "arg"))
    spoiled = text.replace(old, new, 1)
    if new == "kwargs: [{":
        spoiled = spoiled.replace("block_k: 256}", "block_k: 256}]")
    with pytest.raises(LayoutError) as caught:
        problem_of(read_yaml(spoiled, "s.yaml"), "s.yaml")
    assert str(caught.value).startswith(f"s.yaml:{place}: ")
    assert words in str(caught.value)
    assert "pydantic" not in str(caught.value)
    if "duplicate" not in words and "40 digits" not in words:
        assert VALIDATOR.is_valid(read_yaml(spoiled).plain()) is not in_schema
        assert places(VALIDATOR.schema, spoiled) == [place] * in_schema


@pytest.mark.fast
def test_all_mistakes_of_a_file_are_said_at_once() -> None:
    text = KERNEL.replace("M: 64", "M: 0").replace("headroom: 0%", "headroom: much\ncosts: time")
    with pytest.raises(LayoutError) as caught:
        problem_of(read_yaml(text, "s.yaml"), "s.yaml")
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        "s.yaml:7:12",
        "s.yaml:9:11",
        "s.yaml:10:1",
    ]


@pytest.mark.fast
def test_the_keys_are_those_of_the_kernel_language() -> None:
    """The kernel language reads what the model has let through: a key that only one of them knows is no use."""
    assert set(keys_of(KernelKeys)) == set(kernel_text._KERNEL)
    assert set(keys_of(OperandKeys)) == {*kernel_text._OPERAND, "role"}
    assert set(keys_of(ScratchKeys)) == {"array", "memory"}


def keys(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that a schema knows, with what it says of it."""
    if isinstance(node, dict):
        said = node.get("properties")
        if isinstance(said, dict) and "type" in node:
            yield from ((f"{path}.{key}", value) for key, value in said.items())
        for name, inside in node.items():
            yield from keys(inside, f"{path}.{name}")


@pytest.mark.fast
@pytest.mark.parametrize("model", [spec_model, search_model], ids=["spec", "search"])
def test_every_key_has_a_description_and_examples(model: Any) -> None:
    """What an editor shows. Options of properties are described by their pages, which have the examples."""
    found = dict(keys(model.json_schema()))
    assert len(found) > 50
    assert [key for key, said in found.items() if not said.get("description")] == []
    named = {*spec_model.FACTS, *spec_model.PROGRAM_CLAIMS, *spec_model.OF_VALUES, "kernel"}
    asked = set(spec_model.kinds()) - named
    options = {option for kind in asked for option in spec_model.options_of(kind)}
    assert [key for key, said in found.items() if not said.get("examples") and key.split(".")[-1] not in options] == []
