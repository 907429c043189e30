"""The known bugs: each fires on its pattern, and is silent on a twin without it and on versions without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.known_bugs import ask, in_kernels, in_programs
from layoutproof.known_bugs.bug import PACKAGES, SUBJECTS, KnownBug, has
from layoutproof.known_bugs.bugs import BUGS
from tests.known_bugs.page import page

pytest.importorskip("jax", reason="tracing a kernel needs the extra [jax]")

from tests.known_bugs import kernels as k

pytestmark = pytest.mark.slow

CASES = Path(__file__).resolve().parents[1] / "cases" / "known_bugs"
NAMES = {bug.name: bug for bug in BUGS}


def _matmul(x: Any, y: Any) -> Any:
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    return matmul(x, y, block_shape=(128, 128), block_k=256)


def _paged(inline: bool, q: Any, pages: Any, lengths: Any, table: Any) -> Any:
    from jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel import paged_attention

    return paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=4, inline_seq_dim=inline)


_ROWS = k.f32(16, 128)
_PAGED = (k.f32(2, 8, 128), k.f32(1, 16, 16, 128), k.i32(2), k.i32(2, 4))
Made = tuple[Callable[..., Any], tuple[Any, ...]]


def _pair(make: Callable[[Any], Made], one: Any = True, twin: Any = False) -> tuple[Made, Made]:
    return make(one), make(twin)


KERNELS: Mapping[str, tuple[Made, Made]] = {
    "jax-39744": _pair(lambda met: (partial(k.hbm_copy, met=met), (k.f32(2, 256),))),
    "constant-block-index": _pair(lambda at: (partial(k.one_block, at=at), (k.f32(64, 128),)), 1000, 7),
    "empty-prefetch-operand": _pair(lambda many: (k.with_table, (k.i32(many), _ROWS)), 0, 1),
    "jax-24023": _pair(lambda met: (partial(k.aliased, met=met), (k.f32(8, 128),) * 2)),
    "interpreter-element-padding": _pair(lambda met: (partial(k.element_window, met=met), (_ROWS,))),
    "jax-39179": _pair(lambda met: (partial(k.by_table, buffers=1, stores=met), (k.i32(6), k.f32(6, 8, 128)))),
    "interpreter-negative-index": _pair(lambda met: (partial(k.row_before, met=met), (k.f32(8, 128),))),
    "interpreter-block-past-the-end": _pair(lambda met: (partial(k.long_grid, met=met), (k.f32(24, 128),))),
    "wheel-matmul-tail": _pair(lambda n: (_matmul, (k.f32(128, n), k.f32(n, 128))), 300, 512),
    "wheel-paged-attention-empty": _pair(lambda inline: (partial(_paged, inline), _PAGED), False, True),
    "cpu-nan-times-mask": _pair(lambda met: (partial(k.masked, met=met), (_ROWS,))),
}
"""Bug -> a kernel that meets it, and its twin."""

_LOOP = """HloModule jit_f, is_scheduled=true, num_partitions=4
%body (t: (f32[24,8], f32[24,8])) -> (f32[24,8], f32[24,8]) {
  %t = (f32[24,8], f32[24,8]) parameter(0)
  %a = f32[24,8] get-tuple-element(%t), index=0
  %b = f32[24,8] get-tuple-element(%t), index=1
  %i = s32[4,1] constant({ {0}, {2}, {1}, {0} })
  %u = f32[4,8] slice(%b), slice={[0:4], [0:8]}
  %s = f32[24,8] INNER
  ROOT %r = (f32[24,8], f32[24,8]) tuple(%s, %b)
}
ENTRY %main (p: f32[24,8]) -> f32[24,8] {
  %p = f32[24,8] parameter(0)
  %i = (f32[24,8], f32[24,8]) tuple(%p, %p)
  %w = (f32[24,8], f32[24,8]) while(%i), condition=%cond, body=%body
  %g = f32[24,8] get-tuple-element(%w), index=0
  ROOT %all-reduce = f32[24,8] all-reduce(%g), replica_groups={{0,1,2,3}}, to_apply=%add
}
"""
_SCATTER = (
    "scatter(%a, %i, %u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=%add"
)
_ALONE = """HloModule NAME, is_scheduled=true
ENTRY %main (a: f32[256,8,128], i: s32[8,1], u: f32[256,8,128]) -> f32[256,8,128] {
  %a = f32[256,8,128] parameter(0)
  %i = s32[8,1] parameter(1)
  %u = f32[256,8,128] parameter(2)
  ROOT %s = f32[256,8,128] scatter(%a, %i, %u), update_window_dims={0,2}, inserted_window_dims={1}, \
scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=%add
}
"""
_KERNEL = """HloModule jit_f, is_scheduled=true, num_partitions=4
ENTRY %main (p: f32[8,128]) -> f32[8,128] {
  %p = f32[8,128] parameter(0)
  %x = f32[8,128] all-to-all(%p), replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %k = f32[8,128] custom-call(%x), custom_call_target="tpu_custom_call"
}
"""
_GEMM = """HloModule jit_f, is_scheduled=true
ENTRY %main (a: f32[8,8], b: f32[8,8], c: f32[8]) -> f32[8,8] {
  %a = f32[8,8] parameter(0)
  %b = f32[8,8] parameter(1)
  %c = f32[8] parameter(2)
  ROOT %m = f32[8,8] custom-call(%a, %b, %c), custom_call_target="__cublas$lt$matmul", backend_config={CONFIG}
}
"""
_TRITON = """HloModule jit_f, is_scheduled=true
%inner (a: f32[8,8]) -> RESULT {
  %a = f32[8,8] parameter(0)
  ROOT %t = RESULT MADE
}
ENTRY %main (a: f32[8,8]) -> RESULT {
  %a = f32[8,8] parameter(0)
  ROOT %f = RESULT fusion(%a), kind=kCustom, calls=%inner, backend_config={"fusion_backend_config":{"kind":"__triton"}}
}
"""
_FLAGS = {"xla_tpu_enable_async_collective_fusion": "true", "xla_tpu_overlap_compute_collective_tc": "true"}
_ALPHA = '"gemm_backend_config":{"alpha_real":%s,"beta":1,"epilogue":"%s"}'


def _file(name: str) -> str:
    return (CASES / f"{name}.hlo").read_text()


Text = tuple[str, Mapping[str, str]]
PROGRAMS: Mapping[str, tuple[tuple[Text, ...], tuple[Text, ...]]] = {
    "xla-49118": (((_file("dynamic_update_slice"), {}),), ((_file("dynamic_update_slice_clamped"), {}),)),
    "xla-49122": (((_file("dynamic_slice"), {}),), ((_file("dynamic_slice_0.12"), {}),)),
    "xla-49176": (
        ((_file("shifted_update"), {}),),
        ((_file("shifted_update_unreshaped"), {}), (_file("shifted_update_other_way"), {})),
    ),
    "jax-39103": (((_file("vmapped_product"), {}),), ((_file("vmapped_product_short"), {}),)),
    "jax-39257": (((_file("eight_dimensions"), {}),), ((_file("seven_dimensions"), {}),)),
    "jax-40412": (
        ((_file("seven_dimensions"), {}),),
        ((_file("six_dimensions"), {}), (_file("seven_dimensions_none_of_1"), {})),
    ),
    "jax-40101": (((_file("loop_update"), {}),), ((_file("loop_update_of_little"), {}),)),
    "jax-37465": (((_file("diff_reduced"), {}),), ((_file("whole_reduced"), {}),)),
    "xla-49143": (((_LOOP.replace("INNER", _SCATTER), {}),), ((_LOOP.replace("INNER", "add(%a, %b)"), {}),)),
    "jax-39025": (((_ALONE.replace("NAME", "jit_scatter-add"), {}),), ((_ALONE.replace("NAME", "jit_step"), {}),)),
    "maxdiffusion-429": (
        ((_KERNEL, _FLAGS),),
        ((_KERNEL, {}), (_KERNEL, dict(list(_FLAGS.items())[:1])), (_KERNEL, {**_FLAGS, list(_FLAGS)[1]: "false"})),
    ),
    "xla-46110": (
        ((_GEMM.replace("CONFIG", _ALPHA % (0.015625, "BIAS")), {}),),
        tuple(
            (_GEMM.replace("CONFIG", _ALPHA % of), {}) for of in ((1, "BIAS"), (0.015625, "DEFAULT"), (1.0, "DEFAULT"))
        ),
    ),
    "jax-39486": (
        ((_TRITON.replace("RESULT", "(f32[8,8], f32[8,8])").replace("MADE", "tuple(%a, %a)"), {}),),
        ((_TRITON.replace("RESULT", "f32[8,8]").replace("MADE", "negate(%a)"), {}),),
    ),
}
"""Bug -> compiled programs that meet it, with their flags, and others that do not."""

REFUSALS = {
    "jax-39301": (
        "INTERNAL: during context [hlo verifier]: Expected instruction to have shape equal to f32[6], actual shape is "
        "f32[4]: %concatenate.7 = f32[4]{0} concatenate(%slice.1, %slice), dimensions={0} "
        "Failed after spmd-partitioning",
        "INTERNAL: during context [hlo verifier]: Expected instruction to have shape equal to f32[6], actual shape is "
        "f32[4]: %add.7 = f32[4]{0} add(%a, %b)",
    )
}


def platform(bug: KnownBug) -> str:
    return {"cpu": "cpu", "gpu": "gpu"}.get(bug.platform, "v5e")


def test_every_bug_is_whole() -> None:
    """Names are used once, every pattern is there, every bug has a link, evidence, and a text of each kind here."""
    assert len(NAMES) == len(BUGS) >= 25
    tried = {"kernel": KERNELS, "program": PROGRAMS, "refusal": REFUSALS}
    for bug in BUGS:
        assert bug.subject in SUBJECTS
        assert bug.package in PACKAGES
        assert bug.name in tried[bug.subject], bug.name
        assert bug.link.startswith(("https://github.com/", "BUGS-FOUND.md, ")), bug.name
        assert bug.evidence
        assert bug.effect
        assert bug.way_out
        assert has(bug, bug.first), bug.name
        assert has(bug, bug.last), bug.name
        assert not bug.fixed or has(bug, bug.fixed) is False
        for module, subject in ((in_kernels, "kernel"), (in_programs, "program")):
            assert bug.subject != subject or callable(getattr(module, bug.pattern))
    assert sum(map(len, tried.values())) == len(BUGS)


def test_headings_of_bugs_found() -> None:
    """A link into BUGS-FOUND.md is a heading of it."""
    text = (Path(__file__).resolve().parents[2] / "BUGS-FOUND.md").read_text().replace("`", "")
    headings = {line.lstrip("# ") for line in text.splitlines() if line.startswith("###")}
    ours = [bug.link.partition(", ")[2] for bug in BUGS if bug.link.startswith("BUGS-FOUND.md")]
    assert ours
    assert set(ours) <= headings


def met(made: Made, versions: Mapping[str, str]) -> set[str]:
    function, arguments = made
    calls = lp.kernels(function, *arguments, properties=["grid_positive"]).calls
    kernels = [call.call for call in calls]
    return {seen.bug.name for one in kernels for seen in ask.of_kernel(one, PACKAGES, versions)}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    """Under a version that has it, of the kernel and not of its twin; under an older version of neither."""
    bug = NAMES[name]
    one, twin = KERNELS[name]
    assert met(one, {bug.package: bug.last}) == {name}
    assert met(twin, {bug.package: bug.last}) == set()
    assert name not in met(one, {bug.package: "0.0.1"})
    assert met(one, {}) == set()


def test_a_kernel_is_not_red() -> None:
    """A right kernel stays proved, and the bug is a warning under the version that has it alone."""
    (function, arguments), _ = KERNELS["jax-39744"]
    for compiler, severity in (("0.0.42.1", ""), ("0.0.44", "warning"), ("0.0.52", "info")):
        judged = lp.kernels(function, *arguments, target="v5e", compiler=compiler)
        assert judged.exit_code == 0
        assert [f.severity for f in judged.calls[0].of("known_bugs")] == [severity] * bool(severity)
    (found,) = lp.kernels(function, *arguments, target="v5e", compiler="0.0.44").calls[0].of("known_bugs")
    assert found.verdict is Verdict.REFUTED
    assert "libtpu 0.0.43 to 0.0.45" in found.reason
    assert "https://github.com/jax-ml/jax/issues/39744" in found.reason


def of_text(text: Text, bug: KnownBug, version: str) -> set[str]:
    lines, flags = text
    found = ask.of_program(lines.splitlines(keepends=True), platform(bug), {bug.package: version}, flags)
    return {one.bug.name for one in found}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """Of the texts that meet it and not of the others; not before its first version, and not from its fix on."""
    bug = NAMES[name]
    fires, silent = PROGRAMS[name]
    for text in fires:
        assert name in of_text(text, bug, bug.last)
        assert name not in of_text(text, bug, "0.0.1")
        assert name not in of_text(text, bug, "")
        assert not bug.fixed or name not in of_text(text, bug, bug.fixed)
    for text in silent:
        assert name not in of_text(text, bug, bug.last)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    bug = NAMES[name]
    told, other = REFUSALS[name]
    assert [one.bug.name for one in ask.of_refusal(told, "cpu", {bug.package: bug.last})] == [name]
    assert ask.of_refusal(other, "cpu", {bug.package: bug.last}) == ()
    assert ask.of_refusal(told, "cpu", {bug.package: "0.0.1"}) == ()


def test_a_record_shows_it(tmp_path: Path) -> None:
    """`compile` shows the bug of the jaxlib that compiled the program, and its exit code stays 0."""
    jaxlib = ask.installed().get("jaxlib", "")
    (tmp_path / "shifted.py").write_text(
        "def f(x):\n    b = x + 1\n    return b.at[1:].set(b[:-1]).reshape((1, 8, 16))\n"
    )
    answer = lp.compile(str(tmp_path / "shifted.py:f"), "s32[8,16]")
    assert answer.exit_code == 0
    assert [f.figures["bug"] for f in answer.bugs] == ["xla-49176"] * (has(NAMES["xla-49176"], jaxlib) is not False)
    assert all(f.question == "known_bugs" and f.severity in ("warning", "info") for f in answer.bugs)


def test_the_page_is_of_the_data() -> None:
    assert (Path(__file__).resolve().parents[2] / "docs" / "known_bugs.md").read_text() == page()
