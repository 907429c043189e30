"""Programs as texts: every form that JAX writes is read, and what is wrong with one is told in words."""

from __future__ import annotations

import base64
import functools
import json

import pytest

jax = pytest.importorskip("jax", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.core.errors import LayoutError  # noqa: E402
from layoutproof.kernel.kernel import Kernel, Scratch, Unmodelled  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_in_hlo, kernels_of_calls  # noqa: E402
from tests.pallas.mosaic_texts import MODULE, WINDOW, body, call_line, config, lowered  # noqa: E402
from tests.pallas.pitfalls import PITFALLS, call  # noqa: E402
from tests.said import Said, raises, says  # noqa: E402

pytestmark = pytest.mark.slow


def only(text: str) -> Kernel | Unmodelled:
    (found,) = kernels_in_hlo(text, "program.mlir")
    return found


def reason(text: str) -> str:
    return _reason(only(text))


def _reason(found: Kernel | Unmodelled) -> str:
    assert isinstance(found, Unmodelled)
    assert found.source == "program.mlir:3"
    return found.reason


def test_a_module_as_text() -> None:
    kernel = only(call_line(config()))
    assert isinstance(kernel, Kernel)
    assert str(kernel) == "copy grid (4)"
    assert kernel.source == "program.mlir:3"
    assert [str(o) for o in kernel.operands] == [
        "args[0] f32[32,128] block (8, 128) index (g0, 0)",
        "outputs[0] f32[32,128] block (8, 128) index (g0, 0)",
    ]
    assert kernel.semantics == ("arbitrary",)


def test_how_a_window_is_kept() -> None:
    kept = "pipeline_mode = #tpu.pipeline_mode<synchronous>, revisit_mode = #tpu.revisit_mode<any>"
    module = MODULE.replace(f"{WINDOW}]", f"{WINDOW[:-1]}, {kept}}}]")
    kernel = only(call_line(config(module)))
    assert isinstance(kernel, Kernel)
    assert [(o.buffers, o.revisit) for o in kernel.operands] == [(None, "immediate"), (1, "any")]


def as_forms() -> dict[str, str]:
    """One program in the forms that JAX writes."""
    from jax import export

    function, arguments = call((4,), lambda i, t: (t[i] % 4, 0), lambda i, t: (i, 0), table=4)
    made = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
    operation = made.compiler_ir("stablehlo").operation
    return {
        "text": made.as_text(),
        "with locations": made.as_text(debug_info=True),
        "generic": operation.get_asm(print_generic_op_form=True),
        "hlo": made.as_text(dialect="hlo"),
        "exported": export.export(jax.jit(function), platforms=["tpu"])(*arguments).mlir_module(),
    }


@pytest.mark.parametrize("form", ["text", "with locations", "generic", "hlo", "exported"])
def test_forms_of_one_program(form: str) -> None:
    (kernel,) = kernels_in_hlo(as_forms()[form])
    assert isinstance(kernel, Kernel)
    assert str(kernel) == "copy grid (4)"
    assert [str(o) for o in kernel.operands] == [
        "args[0] f32[32,128] block (8, 128) index (prefetch0[g0] % 4, 0)",
        "outputs[0] f32[32,128] block (8, 128) index (g0, 0)",
    ]
    assert [(t.name, t.dims, t.bits, t.signed) for t in kernel.tables] == [("prefetch0", (4,), 32, True)]
    assert kernel.source.partition(":")[0] == "text"


@pytest.mark.parametrize("form", ["text", "hlo"])
def test_a_text_that_is_cut_is_never_whole(form: str) -> None:
    """Wherever it is cut: an error, or something Unmodelled."""
    text = as_forms()[form].rstrip()
    whole = len(text)
    for end in sorted({*range(0, whole, 97), *range(whole - 300, whole), text.rindex("}")}):
        try:
            found = list(calls_in(text[:end]))
        except LayoutError:
            continue
        assert any(each.problem for each in found), (end, text[max(0, end - 80) : end])


def test_programs_without_kernels() -> None:
    made = jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), "float32"))
    assert kernels_in_hlo(made.as_text()) == ()
    assert kernels_in_hlo(made.as_text(dialect="hlo")) == ()
    assert kernels_in_hlo(made.compile().as_text()) == ()


@pytest.mark.parametrize("text", ["", "hello", "{}", "def f(): pass\n", "\x00\xff" * 100])
def test_texts_that_are_no_program(text: str) -> None:
    with raises(LayoutError, Said("mosaic.no_module_text")) as error:
        kernels_in_hlo(text, "notes.txt")
    assert (error.value.file, error.value.line) == ("notes.txt", 1)


CONFIGS = {
    "no JSON": ("hello", "is no JSON"),
    "JSON that is cut": (config()[:200], "is no JSON"),
    "a list": ("[1]", "is no JSON object"),
    "a number": ("17", "is no JSON object"),
    "deep": ("[" * 100_000, "is no JSON"),
    "no body": ('{"custom_call_config": {}}', Said("mosaic.config_no_body")),
    "nothing": ("{}", Said("mosaic.config_no_body")),
    "a cut body": (json.dumps({"custom_call_config": {"body": body()[:-5]}}), Said("mosaic.body_no_base64")),
    "no base64": (json.dumps({"custom_call_config": {"body": "!!"}}), Said("mosaic.body_no_base64")),
    "a body that is none": (
        json.dumps({"custom_call_config": {"body": base64.b64encode(b"rubbish").decode()}}),
        Said("mosaic.module"),
    ),
    "half a module": (config(MODULE[: len(MODULE) // 2]), Said("mosaic.module")),
    "a new field": (config(colour="red"), Said("mosaic.config_key", name="colour")),
    "a new field inside": (config(custom={"swizzle": 3}), Said("mosaic.config_key", name="swizzle")),
    "flags": (config(flag_configs=[{"flag_type": "x", "value": {}}]), Said("mosaic.config_key", name="flag_configs")),
    "SparseCore": (config(device_type="DEVICE_TYPE_SPARSECORE"), Said("mosaic.config_key", name="device_type")),
    "colours": (
        config(custom={"input_memory_space_colors": [{"operand_index": 0, "color": 1}]}),
        Said("mosaic.whole_array", name="input_memory_space_colors", where="VMEM"),
    ),
    "two limits": (
        config(scoped_memory_configs=[{"memory_space": 1, "offset": 0, "size": n} for n in (1, 2)]),
        "scoped_memory_configs of a form",
    ),
    "a limit of words": (config(scoped_memory_configs=[{"memory_space": 1, "size": "x"}]), "which is no number"),
}


@functools.lru_cache(maxsize=1)
def configurations_read() -> dict[str, Kernel | Unmodelled]:
    return _read({name: call_line(given) for name, (given, _) in CONFIGS.items()})


def _read(texts: dict[str, str]) -> dict[str, Kernel | Unmodelled]:
    """What is found in texts of one call each; one child process for all of them."""
    calls = [call for text in texts.values() for call in calls_in(text, "program.mlir")]
    return dict(zip(texts, kernels_of_calls(calls), strict=True))


@pytest.mark.parametrize("name", CONFIGS)
def test_wrong_configurations(name: str) -> None:
    assert says(CONFIGS[name][1], _reason(configurations_read()[name]))


def test_what_stands_beside_the_module_is_read() -> None:
    limit = [{"memory_space": "1", "offset": "0", "size": "33554432"}]
    kernel = only(call_line(config(scoped_memory_configs=limit, custom={"internal_scratch_in_bytes": 4096})))
    assert isinstance(kernel, Kernel)
    assert kernel.vmem_limit == 33554432
    assert kernel.scratch == (Scratch((4096,), "u8"),)
    assert isinstance(
        only(call_line(config(flag_configs=[], device_type="", used_scoped_memory_configs=limit))), Kernel
    )


MODULES = {
    "an attribute": ("scalar_prefetch = 0 : i64", "scalar_prefetch = 0 : i64, spin = 1 : i64", "the attribute spin"),
    "a window's": ("window_bounds =", "halo = 1 : i64, window_bounds =", "the attribute halo"),
    "a module's": ("stable_mosaic.version", "tpu.dynamic_dimension_mapping_module_7", "tpu.dynamic_dimension_mapping"),
    "a core": ("core_type<tc>", "core_type<sc_scalar_subcore>", "the core type sc_scalar_subcore"),
    "a kind": ("array<i64: 8, 128>}", "array<i64: 8, 128>, window_kind = 3}", "the window kind 3"),
    "a mode": ("array<i64: 8, 128>}", "array<i64: 8, 128>, pipeline_mode = 3}", "pipeline_mode 3"),
    "a rank": ("array<i64: 8, 128>}", "array<i64: 8>}", Said("mosaic.window_rank", name="args[0]", rank=2, window=1)),
    "tables": (
        "scalar_prefetch = 0",
        "scalar_prefetch = 1",
        Said("mosaic.table_type", number=0, ours="f32[32,128]", theirs="f32[8,128]"),
    ),
    "fewer": (
        "scalar_prefetch = 0",
        "scalar_prefetch = -1",
        Said("mosaic.no_number", name="scalar_prefetch", value="-1"),
    ),
    "scratch": (
        "scratch_operands = 0",
        "scratch_operands = 2",
        Said("mosaic.arguments", arguments=3, grid=1, tables=0, windows=2, scratches=2),
    ),
    "windows": (f"[{WINDOW}, {WINDOW}]", f"[{WINDOW}]", Said("mosaic.windows", windows=2)),
    "no window": (f"[{WINDOW}, {WINDOW}]", f"[{{}}, {WINDOW}]", "args[0] has no window"),
    "memory": (
        "memref<8x128xf32, #tpu.memory_space<vmem>>",
        "memref<8x128xf32>",
        Said("mosaic.argument_type", text="memref<8x128xf32>"),
    ),
    "grid": (
        "iteration_bounds = array<i64: 4>",
        "iteration_bounds = 4 : i64",
        Said("mosaic.no_list", what="iteration_bounds", value="4"),
    ),
    "semantics": ("[#tpu.dimension_semantics<arbitrary>]", "[]", Said("mosaic.semantics", value="[]", many=1)),
    "two kernels": (
        "@transform_0(%i: i32) -> (i32, i32) {",
        "@transform_0(%i: i32) -> (i32, i32) attributes {window_params = []} {",
        Said("mosaic.kernels", kernels=2),
    ),
}


@functools.lru_cache(maxsize=1)
def modules_read() -> dict[str, Kernel | Unmodelled]:
    assert all(old in MODULE for old, _, _ in MODULES.values())
    return _read({name: call_line(config(MODULE.replace(old, new))) for name, (old, new, _) in MODULES.items()})


@pytest.mark.parametrize("name", MODULES)
def test_what_is_not_modelled_is_named(name: str) -> None:
    assert says(MODULES[name][2], _reason(modules_read()[name]))


INDEX_MAPS = {
    "missing": ("@transform_0, window", "@other, window", Said("mosaic.function_missing", name="other")),
    "affine": (
        "@transform_0, window",
        "affine_map<(d0) -> (d0, 0)>, window",
        Said("mosaic.not_a_function", target="affine_map<(d0) -> (d0, 0)>"),
    ),
    "results": ("-> (i32, i32) {", "-> i32 {", Said("pallas.index_map_results", results=1, dimensions=2)),
    "operation": ("%c = arith.constant 0 : i32", "%c = arith.divui %i, %i : i32", "the operation arith.divui"),
}


@pytest.mark.parametrize("name", INDEX_MAPS)
def test_index_maps_that_cannot_be_read(name: str) -> None:
    """The kernel is there, and the operand says why it is unknown where its windows are."""
    old, new, words = INDEX_MAPS[name]
    module = MODULE.replace(old, new)
    kernel = only(call_line(config(module.replace("return %i, %c : i32, i32", "return %i : i32") if name == "results"
                                   else module)))  # fmt: skip
    assert isinstance(kernel, Kernel)
    assert says(words, kernel.inputs[0].unmodelled)


def test_other_shapes_than_numbers() -> None:
    assert Said("mosaic.no_size").of(reason(call_line(config(), operands="tensor<?x128xf32>")))
    assert "no array of numbers" in reason(call_line(config(), operands="tensor<4x!token>"))
    assert "2 dimensions" not in reason(call_line(config(), operands="tensor<32xf32>"))


def test_kernels_for_gpu_are_said() -> None:
    text = call_line("{}").replace("@tpu_custom_call", "@__gpu$xla.gpu.triton").replace('kernel_name = "copy"', "x")
    found = only(text)
    assert isinstance(found, Unmodelled)
    assert Said("mosaic.gpu_kernel").of(found.reason)
    hlo = (
        "HloModule m, entry_computation_layout={(f32[8])->f32[8]}\n\nENTRY e {\n  x = f32[8]{0} parameter(0)\n"
        '  ROOT k = f32[8]{0} custom-call(x), custom_call_target="mosaic_gpu_v2", backend_config={}\n}\n'
    )
    (gpu,) = kernels_in_hlo(hlo, "dump.txt")
    assert isinstance(gpu, Unmodelled)
    assert gpu.source == "dump.txt:5"


def test_several_problems_and_kernels_in_one_text() -> None:
    """What is wrong with one call is no reason not to read the next."""
    good, bad = call_line(config()).splitlines(), call_line("hello").splitlines()
    lines = [*good[:3], bad[2].replace("%0 =", "%1 ="), good[2].replace("%0 =", "%2 ="), *good[3:]]
    found = kernels_in_hlo("\n".join(lines), "many.mlir")
    assert [(type(each).__name__, each.source) for each in found] == [
        ("Kernel", "many.mlir:3"),
        ("Unmodelled", "many.mlir:4"),
        ("Kernel", "many.mlir:5"),
    ]


def test_assumptions_are_about_tables() -> None:
    text = lowered(PITFALLS[23].wrong())
    (kernel,) = kernels_in_hlo(text, assume=["0 <= prefetch0 < 4"])
    assert isinstance(kernel, Kernel)
    assert kernel.tables[0].assumptions() == ("0 <= prefetch0 < 4",)
    with pytest.raises(
        LayoutError,
        check=Said("kernel.assumption_no_table", text="0 <= lengths < 4", have="the calls have prefetch0").of,
    ):
        kernels_in_hlo(text, assume=["0 <= lengths < 4"])
    with pytest.raises(
        LayoutError, check=Said("kernel.assumption_no_table", text="0 <= prefetch0 < 4", have="no call has one").of
    ):
        kernels_in_hlo(call_line(config()), assume=["0 <= prefetch0 < 4"])
