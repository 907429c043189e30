"""Seeded mutants of real compiler output: what changes meaning or cost is never let pass, what changes nothing is."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import re
from pathlib import Path

import pytest

from layoutproof.gating import lock
from layoutproof.gating.states import File
from tests.gating.mutants import ALIKE, MEANING, SEEN_NOT_DENIED, mutants, unnamed, verdict
from tests.recorded import dump

pytestmark = pytest.mark.slow

SMALL = (
    *("reshard_v5e_2x2", "sharded_matmul_v5e_2x2", "sharded_reduce_v5e_2x2"),
    *("host_offload_v5e", "quant_int4_v5e", "while_v5e", "embedding_v5e"),
)
PROGRAMS = Path(__file__).resolve().parents[1] / "cases" / "programs.jsonl.gz"
KERNEL = {name: operator for name, operator in MEANING.items() if name.startswith("kernel")}


@pytest.mark.parametrize("name", SMALL)
def test_mutants_of_meaning(name: str) -> None:
    """None is green; constants, and with them the trips of a loop, are a warning."""
    text = dump(name)
    seen = 0
    for operator, new in mutants(text, {**MEANING, **dict.fromkeys(KERNEL, lambda text, chance: None)}, 2, 11):
        word, found = verdict(text, new)
        wanted = {"warned"} if operator in SEEN_NOT_DENIED else {"denied", "unknown"}
        assert word in wanted, (operator, word, [f.question for f in found])
        seen += 1
    assert seen > 10


@pytest.mark.parametrize("name", SMALL)
def test_mutants_of_which_every_name_is_gone(name: str) -> None:
    """They are as red as those with names: matching does not rest on what things are called."""
    text = dump(name)
    operators = {**MEANING, **dict.fromkeys(KERNEL, lambda text, chance: None)}
    for operator, new in mutants(text, operators, 1, 12):
        word, found = verdict(text, unnamed(new))
        wanted = {"warned"} if operator in SEEN_NOT_DENIED else {"denied", "unknown"}
        assert word in wanted, (operator, word, [f.question for f in found])


@pytest.mark.parametrize("name", SMALL)
def test_mutants_that_change_nothing(name: str) -> None:
    """All are green."""
    text = dump(name)
    seen = 0
    for operator, new in mutants(text, ALIKE, 2, 11):
        word, found = verdict(text, new)
        assert word == "green", (operator, [(f.question, f.subject, f.reason) for f in found])
        seen += 1
    assert seen > 3


READS = importlib.util.find_spec("jaxlib") is not None
"""Whether Mosaic kernels are read here, which needs the extra [jax]."""


def test_mutants_of_a_kernel() -> None:
    """A hole or blocks in another place are denied; another body is a warning. Where none is read, all are unknown."""
    text = dump("transformer_bf16_v5e")
    words = {operator: verdict(text, new)[0] for operator, new in mutants(text, KERNEL, 1, 11)}
    told = {"kernel_hole": "denied", "kernel_map": "denied", "kernel_body": "warned"}
    assert words == (told if READS else dict.fromkeys(told, "unknown"))


def test_a_kernel_that_cannot_be_read_and_differs_by_a_byte_is_unknown() -> None:
    """Two of them were no change, and so was a hole where JAX is not installed. A lock says it as two texts do."""
    one, other = (
        re.sub(r'(?<="body":")[^"]*', base64.b64encode(module).decode(), dump("transformer_bf16_v5e"))
        for module in (b"no module 1", b"no module 2")
    )
    elsewhere = re.sub(r"metadata=\{[^}]*\}", "metadata={}", one)
    locked = lock.write([File("a.txt", "a.txt", one.encode())], ["a.txt"])
    old = lock.locked(locked, "layoutproof.lock")["a.txt"]
    for new, word in ((one, "green"), (elsewhere, "green"), (other, "unknown")):
        assert verdict(one, new)[0] == word
        found = lock.drift(old, File("a.txt", "a.txt", new.encode()), "a.txt").findings
        assert {each.question for each in found} == ({"unknown"} if word == "unknown" else set())


def compiled(name: str) -> str:
    """The text of a program of the corpus for v5e."""
    rows = map(json.loads, gzip.decompress(PROGRAMS.read_bytes()).splitlines())
    return next(str(row["text"]) for row in rows if (row["name"], row["target"]) == (name, "v5e"))


def test_a_fusion_without_operands_has_the_result_of_its_computation() -> None:
    """Found by 931 mutants of the corpus: nothing was compared of a fusion that is given nothing."""
    text = compiled("fourier")
    fusion = re.search(r"= (f32)\[[\d,]+\]\S* fusion\(\)", text)
    assert fusion is not None
    word, found = verdict(text, f"{text[: fusion.start(1)]}bf16{text[fusion.end(1) :]}")
    assert word == "denied"
    assert "contradiction" in {each.question for each in found}


def test_a_bitcast_between_layouts_that_are_written_otherwise_is_the_old_one() -> None:
    """Found by 421 edits of nothing; one to another order of the same array is another."""
    text = compiled("all_to_all")
    assert verdict(text, text.replace("{1,0:T(8,128)}", "{1,0:T(8,128)(1,128)}"))[0] == "green"
    cast = re.search(r"\{1,0:T\(8,128\)\S*(?= bitcast\()", text)
    assert cast is not None
    assert verdict(text, f"{text[: cast.start()]}{{0,1:T(8,128)}}{text[cast.end() :]}")[0] == "denied"
