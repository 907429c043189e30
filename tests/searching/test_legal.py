"""`lp.legal` says of configurations what `lp.kernels` says after tracing each, and tuners take it as it is."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.recorded import Recorded, Trail
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.searching import configurations
from layoutproof.searching.configurations import ALONE, QUESTIONS
from layoutproof.searching.legal import MEMORY
from tests.said import stretch as stretch_of
from tests.said import words as words_of
from tests.searching import traced_functions

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
SQUARE = ("f32[512,512]",)
PAIR = ("bf16[2048,2048]", "bf16[2048,2048]")
SIZES = {"block_m": [128, 100, 256, 512, 1024, 2048], "block_n": [128, 512, 1024], "block_k": [256, 500, 1024, 2048]}


def matmul(x: Any, y: Any, *, block_m: int, block_n: int, block_k: int, whole: bool = True) -> Any:
    """A product summed in scratch; its grid is right for every block that the rules take, unless it is cut short."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    (m, k), n = x.shape, y.shape[1]

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            acc[...] = jax.numpy.zeros_like(acc)

        acc[...] += jax.numpy.dot(x[...], y[...], preferred_element_type="float32")

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            o[...] = acc[...].astype(o.dtype)

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(m, block_m) if whole else m // block_m, pl.cdiv(n, block_n), k // block_k),
        in_specs=[
            pl.BlockSpec((block_m, block_k), lambda i, j, k: (i, k)),
            pl.BlockSpec((block_k, block_n), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block_m, block_n), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((block_m, block_n), jax.numpy.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


def of_matmul(**more: Any) -> configurations.Legal:
    return lp.legal(matmul, *PAIR, target="v5e", parameters=SIZES, **more)


def every(parameters: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    for values in itertools.product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))


def by_kernels(function: Any, args: Sequence[str], configuration: Mapping[str, int]) -> Verdict:
    """The worst of the same questions, of `lp.kernels`."""
    shapes = [lp.pallas.from_jax.user.argument(text) for text in args]  # type: ignore[attr-defined]
    try:
        found = lp.kernels(functools.partial(function, **configuration), *shapes, target="v5e").findings
    except LayoutError:
        return REFUTED
    asked = (*QUESTIONS, MEMORY)
    return min(f.verdict for f in found if f.question in asked and f.severity == "error")


@pytest.mark.parametrize(
    ("function", "args", "parameters", "most"),
    [
        (matmul, PAIR, {**SIZES, "block_n": [1024], "block_k": [256, 500, 2048]}, 8),
        (functools.partial(matmul, whole=False), ("bf16[2000,512]", "bf16[512,256]"),
         {"block_m": [80, 96, 128, 200, 400, 500, 2000], "block_n": [128, 256], "block_k": [512]}, 3),
        (traced_functions.copy, SQUARE, {"rows": [3, 8, 12, 16, 64, 128, 512], "columns": [100, 128, 512]}, 12),
        (traced_functions.special, SQUARE, {"rows": [8, 16, 32, 64, 128, 256, 512], "columns": [128, 256, 512]}, 5),
        (traced_functions.truncated, ("f32[1000,128]",), {"rows": [8, 40, 100, 104, 200, 250, 496, 500, 1000]}, 3),
    ],
)  # fmt: skip
def test_verdicts_are_those_of_kernels(function: Any, args: Any, parameters: Any, most: int) -> None:
    legal = lp.legal(function, *args, target="v5e", parameters=parameters)
    answers = [legal(**each) for each in every(parameters)]
    assert [a.rules for a in answers] == [by_kernels(function, args, a.configuration) for a in answers]
    assert {PROVED, REFUTED} <= {a.rules for a in answers} or function is traced_functions.special
    assert sum(a.traced for a in answers) <= most


def test_what_decides_otherwise_is_traced_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One special case in the function's own code; the twin: where no decision is recorded, it goes unnoticed."""
    parameters = {"rows": [8, 16, 32, 64, 128, 256, 512], "columns": [128, 256, 512]}

    def steps() -> list[int | None]:
        legal = lp.legal(traced_functions.special, *SQUARE, target="v5e", parameters=parameters)
        return [legal(**each).steps for each in every(parameters)]

    traced = [
        lp.kernels(functools.partial(traced_functions.special, **each), jax.ShapeDtypeStruct((512, 512), "float32"))
        for each in every(parameters)
    ]
    right = [functools.reduce(int.__mul__, found.calls[0].call.grid) for found in traced]
    assert steps() == right
    monkeypatch.setattr(Trail, "decide", lambda *arguments: None)
    assert steps() != right


def test_questions_of_one_array_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a fault in one array is found again where other arrays are cut otherwise."""
    asked: list[tuple[str, ...]] = []
    judge = configurations.judge

    def counted(kernel: Any, **how: Any) -> Any:
        asked.extend([tuple(o.name for o in kernel.operands)] if how["names"] == ALONE else [])
        return judge(kernel, **how)

    monkeypatch.setattr(configurations, "judge", counted)
    legal = lp.legal(
        functools.partial(matmul, whole=False), "bf16[2000,512]", "bf16[512,512]", target="v5e",
        parameters={"block_m": [200, 400, 480, 2000], "block_n": [128, 256, 512], "block_k": [256, 512]},
    )  # fmt: skip
    answers = [legal(**each) for each in every(legal.parameters)]
    assert {a.configuration["block_m"] for a in answers if a.verdict is REFUTED} >= {480}
    assert all("outputs_covered" in a.reason for a in answers if a.configuration["block_m"] == 480)
    assert len(asked) < 3 * len(answers) / 2


def test_the_answer_has_its_figures() -> None:
    legal = of_matmul()
    found = legal(block_m=256, block_n=512, block_k=1024)
    assert (found.verdict, found.steps, found.vmem_limit) == (PROVED, 64, 16 << 20)
    # two buffers of each window, and the sums in 32 bits
    assert found.vmem_estimate == 2 * 2 * (256 * 1024 + 1024 * 512 + 256 * 512) + 4 * 256 * 512
    assert found.vmem_bytes is not None
    assert found.vmem_bytes <= found.vmem_estimate
    assert found.traffic == 2 * (2048 * 2048 * 4 + 2048 * 2048 * 8 + 2048 * 2048)
    assert bool(found)
    assert json.loads(json.dumps(found.as_dict()))["configuration"] == {"block_m": 256, "block_n": 512, "block_k": 1024}
    assert str(found).startswith("legal block_m=256, block_n=512, block_k=1024: 64 steps, 109051904 bytes of HBM")


def test_refused_and_unknown_say_why() -> None:
    legal = of_matmul()
    large = legal(block_m=2048, block_n=1024, block_k=2048)
    assert (large.verdict, large.question) == (REFUTED, MEMORY)
    assert not large
    assert large.vmem_bytes is not None
    assert large.vmem_bytes > 16 << 20
    rows = legal(block_m=100, block_n=128, block_k=256)
    assert (rows.verdict, rows.question) == (REFUTED, "block_shape")
    assert "100 of 2048 rows" in rows.reason
    full = legal(block_m=1024, block_n=1024, block_k=1024)
    assert (full.verdict, full.rules) == (UNKNOWN, PROVED)
    assert "16777216 of 16777216 bytes" in full.reason
    with pytest.raises(lp.Undecided, match=r"unknown block_m=1024, .* compare \.verdict"):
        bool(full)


def test_a_product_that_the_body_holds_is_told_of_what_is_traced_and_what_is_not() -> None:
    rows = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    legal = lp.legal(traced_functions.deep, "f32[4096,128]", target="v5e", parameters={"rows": rows})
    verdicts = [legal(rows=each).verdict for each in rows]
    # 2048 x 2048 scores in 32 bits are all of VMEM
    assert verdicts == [PROVED] * 8 + [UNKNOWN] * 2
    assert stretch_of("searching.vmem_with_product", held=16777216) in legal(rows=2048).reason


def test_what_the_function_refuses_is_refused_in_its_words() -> None:
    legal = lp.legal(traced_functions.copy, *SQUARE, target="v5e", parameters={"rows": range(1, 40), "columns": [128]})
    found = legal(rows=7, columns=128)
    assert (found.verdict, found.rules, found.steps) == (REFUTED, REFUTED, None)
    assert "512 rows are no multiple of 7" in found.reason
    assert legal(rows=0, columns=128).verdict is REFUTED
    assert legal(rows=-8, columns=128).verdict is REFUTED
    # refusals that say their numbers are of one configuration each, and keep nobody from deciding alike
    answers = [legal(rows=rows, columns=128) for rows in range(1, 40)]
    assert sum(a.traced and a.verdict is PROVED for a in answers) <= 2


def whole(name: str, found: str) -> str:
    """That a parameter is no whole number."""
    return words_of("core.whole_number", name=name, found=found)


def test_a_function_without_a_call_is_unknown() -> None:
    legal = lp.legal(traced_functions.nothing, *SQUARE, target="v5e", parameters={"rows": [8]})
    assert (legal(rows=8).verdict, legal(rows=8).reason) == (UNKNOWN, words_of("searching.no_pallas_call"))


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"block_m": 128, "block_n": 128, "blok_k": 128}, words_of(
            "searching.no_parameter", name="blok_k", known="block_m, block_n, block_k",
            near=words_of("core.did_you_mean", name="block_k"))),
        ({"block_m": 128, "block_n": 128}, words_of("searching.parameters_missing", missing="block_k")),
        ({"block_m": 128, "block_n": 128, "block_k": "128"}, whole("block_k", "'128'")),
        ({"block_m": 128, "block_n": 12.5, "block_k": 128}, whole("block_n", "12.5")),
        ({"block_m": True, "block_n": 128, "block_k": 128}, whole("block_m", "True")),
    ],
)  # fmt: skip
def test_wrong_configurations(configuration: Any, words: str) -> None:
    with pytest.raises(LayoutError) as error:
        of_matmul()(**configuration)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": "v9"}, "v9"),
        ({"parameters": {}}, "parameters say what a configuration consists of"),
        ({"parameters": {"block_m": []}}, "parameter block_m: " + words_of("searching.no_number", found="[]")),
        ({"parameters": {"block_m": [128, 1.5]}}, "parameter block_m: whole numbers, not [128, 1.5]"),
        ({"parameters": {"block_m": 3.5}}, "parameter block_m: a list, a range, or from, to"),
        ({"parameters": {"block_m": "128..x"}}, "parameter block_m: "),
        ({"parameters": {"block_x": [8]}}, "missing a required"),
        ({"block_m": 128}, "block_m: a parameter, and an argument that is given too"),
        ({"function": 3}, "a function, or MODULE:FUNCTION; not 3"),
    ],
)
def test_wrong_calls(given: Any, words: str) -> None:
    asked = {"function": matmul, "target": "v5e", "parameters": SIZES, **given}
    with pytest.raises(LayoutError) as error:
        lp.legal(asked.pop("function"), *PAIR, **asked)
    assert words in str(error.value)


def test_a_place_and_ranges_as_texts() -> None:
    place = f"{traced_functions.__file__}:copy"
    legal = lp.legal(
        place, *SQUARE, target="TPU v5 lite",
        parameters={"rows": "8..64:x2", "columns": {"from": 128, "to": 512, "multiple_of": 128}},
    )  # fmt: skip
    assert dict(legal.parameters) == {"rows": (8, 16, 32, 64), "columns": (128, 256, 384, 512)}
    assert legal(rows=8, columns=256)


def test_the_space_has_all_that_is_legal_the_best_first() -> None:
    legal = of_matmul()
    found = list(legal.space())
    every_legal = [c for c in every(SIZES) if legal(**c).verdict is PROVED]
    assert sorted(map(str, every_legal)) == sorted(str(dict(a.configuration)) for a in found)
    times = [a.time for a in found]
    assert times == sorted(times)
    with_unknown = list(legal.space(unknown=True))
    assert {a.verdict for a in with_unknown} == {PROVED, UNKNOWN}
    assert len(with_unknown) == len(found) + sum(legal(**c).verdict is UNKNOWN for c in every(SIZES))


def test_a_sample_is_what_its_seed_draws() -> None:
    legal = of_matmul()
    one, again, other = (
        [tuple(a.configuration.values()) for a in legal.space(sample=30, seed=seed, unknown=True)] for seed in (1, 1, 2)
    )
    assert one == again != other
    assert 1 <= len(one) <= 30
    assert len(set(one)) == len(one)
    for wrong in (0, -1, 2.5):
        with pytest.raises(LayoutError, match=re.escape(stretch_of("searching.sample_form"))):
            legal.space(sample=wrong)  # type: ignore[arg-type]
    large = lp.legal(matmul, *PAIR, target="v5e", parameters=dict.fromkeys(SIZES, range(8, 8192, 8)))
    with pytest.raises(
        LayoutError, match=re.escape(stretch_of("searching.too_many_configurations", count="1070599167", most=16384))
    ):
        large.space()
    assert len(list(large.space(sample=5, unknown=True))) <= 5


def measured(configuration: Mapping[str, int]) -> float:
    """A tuner's own measure, in place of a chip."""
    return 1 / (configuration["block_m"] * configuration["block_n"] * configuration["block_k"])


def test_a_plain_loop() -> None:
    """Nothing is measured that is refused; what is unknown is, as the compiler says it."""
    legal = of_matmul()
    tried = [c for c in every(SIZES) if legal(**c).verdict is not REFUTED]
    best = min(tried, key=measured)
    assert legal(**best).verdict is not REFUTED
    assert len(tried) < len(list(every(SIZES)))


def test_optuna_prunes_what_is_refused() -> None:
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    legal = of_matmul()

    def objective(trial: Any) -> float:
        configuration = {name: trial.suggest_categorical(name, values) for name, values in SIZES.items()}
        if legal(**configuration).verdict is REFUTED:
            raise optuna.TrialPruned
        return measured(configuration)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=40)
    assert legal(**study.best_params).verdict is not REFUTED
    assert any(trial.state.name == "PRUNED" for trial in study.trials)


@dataclass(frozen=True)
class Config:
    """A frozen configuration, as tokamax's kernels have theirs."""

    block_m: int
    block_n: int
    block_k: int


def test_hooks_that_give_a_set_of_configurations_or_say_whether_one_is_valid() -> None:
    """tokamax asks an op for its heuristic and the set to autotune; helion's search filters what it generates."""
    legal = of_matmul()

    def heuristics_config() -> Config:
        return Config(**next(legal.space()).configuration)

    def autotuning_configs() -> set[Config]:
        return {Config(**answer.configuration) for answer in legal.space(unknown=True)}

    def is_valid_config(config: Mapping[str, int]) -> bool:
        return legal(**config).verdict is not REFUTED

    assert heuristics_config() in autotuning_configs()
    assert {Config(**c) for c in filter(is_valid_config, every(SIZES))} == autotuning_configs()


def test_the_page_for_tuners() -> None:
    """Each line of its first block runs, and each comment begins with the value."""
    text = (Path(lp.__file__).parents[1] / "docs" / "howto" / "tiling.md").read_text("utf-8")
    first, hooks = (part.partition("```")[0] for part in text.split("```python\n")[1:])
    # several lines are one statement there
    *made, shown = first.partition(")\nfound = ")
    names: dict[str, Any] = {}
    exec("".join(made[:1]) + ")\n", names)
    lines = [line for line in ("found = " + shown).splitlines() if line]
    exec(lines[0], names)
    for line in lines[1:]:
        value = eval(line, names)
        said = line.partition("# ")[2]
        assert said.startswith(str(value) if isinstance(value, Verdict) else repr(value)), line
    tried: list[dict[str, int]] = []
    exec(hooks, {**names, "measure": lambda **config: tried.append(config), "Config": dict})
    assert len(tried) == len(list(names["legal"].space(unknown=True)))


def test_keys_of_a_librarys_caches_decide_nothing() -> None:
    """Some have one hash whatever they hold, and are compared with what an earlier run has left."""

    class Key:
        def __init__(self, held: Any) -> None:
            self.held = held

        def __eq__(self, other: object) -> bool:
            return bool(self.held == other.held)  # type: ignore[attr-defined]

        def __hash__(self) -> int:
            return 0

    library, user = Trail(lambda file: file == __file__), Trail()
    for trail, decided in ((library, []), (user, [("b == 8", 1)])):
        b: Any = Recorded(Term("name", "b"), 8, trail)
        assert (Key(b) == Key(8)) is bool(decided)
        assert Key(b) == Key(b + 0 if decided else b)
        assert [(str(term), outcome) for term, outcome in trail.decisions][:1] == decided


def test_refusals_that_say_their_numbers_are_those_of_tracing_each() -> None:
    """One is traced for all that a `raise` refuses, and each has its own numbers in the words."""
    parameters = {"rows": [3, 5, 6, 7, 9, 11, 13, 8, 16], "columns": [128]}
    legal = lp.legal(traced_functions.copy, *SQUARE, target="v5e", parameters=parameters)
    answers = [legal(**each) for each in every(parameters)]
    refused = [a for a in answers if "are no multiple of" in a.reason]
    assert [f"512 rows are no multiple of {a.configuration['rows']}" in a.reason for a in refused] == [True] * 7
    assert sum(a.traced for a in refused) == 1


def test_an_error_whose_text_is_read_is_of_its_numbers_alone() -> None:
    """The twin of the above: the function catches it, and decides by what it says."""

    def function(x: Any, *, rows: int) -> Any:
        try:
            raise ValueError(f"{rows}")
        except ValueError as error:
            chosen = 8 if str(error) in ("8", "16", "32", "64") else 512
        return traced_functions.copy(x, rows=chosen, columns=128)

    values = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80]
    legal = lp.legal(function, *SQUARE, target="v5e", parameters={"rows": values})
    steps = [legal(rows=rows).steps for rows in values]
    assert steps == [256 if rows in (8, 16, 32, 64) else 4 for rows in values]


def test_numbers_in_operations_of_jax_and_texts_for_profilers() -> None:
    """`jnp.where` reads a number, and so the way is of that number; metadata decides nothing."""
    from jax.experimental import pallas as pl

    def function(x: Any, *, rows: int, columns: int) -> Any:
        x = jax.numpy.where(x > 0, x, rows)
        return pl.pallas_call(
            lambda x, o: o.__setitem__(..., x[...]),
            grid=(512 // rows, 512 // columns),
            in_specs=[pl.BlockSpec((rows, columns), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((rows, columns), lambda i, j: (i, j)),
            out_shape=jax.ShapeDtypeStruct((512, 512), x.dtype),
            metadata={"blocks": json.dumps({"columns": columns})},
        )(x)

    parameters = {"rows": [8, 16, 32], "columns": [128, 256, 512]}
    legal = lp.legal(function, *SQUARE, target="v5e", parameters=parameters)
    answers = [legal(**each) for each in every(parameters)]
    assert [a.steps for a in answers] == [(512 // r) * (512 // c) for r in (8, 16, 32) for c in (128, 256, 512)]
    assert sum(a.traced for a in answers) == 3


@pytest.mark.parametrize("shape", [True, False])
def test_an_equality_that_a_body_asserts_is_no_decision_where_it_is_one_with_a_shape(shape: bool) -> None:
    """The shape of what a body loads follows from the same number; another number is a condition of the code."""
    from jax.experimental import pallas as pl

    def function(x: Any, *, rows: int, columns: int) -> Any:
        def of_shape(x: Any, o: Any) -> None:
            value = x[...]
            assert value.shape == (rows, columns)
            o[...] = value

        def of_number(x: Any, o: Any) -> None:
            assert columns == 128
            o[...] = x[...]

        return pl.pallas_call(
            of_shape if shape else of_number,
            grid=(512 // rows, 512 // columns),
            in_specs=[pl.BlockSpec((rows, columns), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((rows, columns), lambda i, j: (i, j)),
            out_shape=jax.ShapeDtypeStruct((512, 512), x.dtype),
        )(x)

    parameters = {"columns": [128, 256, 512], "rows": [64, 8, 16, 32]}
    legal = lp.legal(function, *SQUARE, target="v5e", parameters=parameters)
    answers = [legal(**each) for each in every(parameters)]
    assert [a.rules for a in answers] == [PROVED] * 4 + [PROVED if shape else REFUTED] * 8
    assert sum(a.traced for a in answers) == (1 if shape else 9)


def test_assumptions_and_conditions_name_parameters() -> None:
    """A table of tiles has other bounds for each size of a tile; with none of them it is unknown."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def function(x: Any, tiles: Any, *, rows: int) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(512 // rows,),
            in_specs=[pl.BlockSpec((rows, 128), lambda i, t: (t[i], 0))],
            out_specs=pl.BlockSpec((rows, 128), lambda i, t: (i, 0)),
        )
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(lambda t, x, o: o.__setitem__(..., x[...]), grid_spec=spec, out_shape=out)(tiles, x)

    sizes = [8, 16, 32, 64, 128, 256, 512]
    for assume, verdict in (
        ("0 <= prefetch0 < 512 // rows", PROVED),
        ("0 <= prefetch0 < 512 // 8", None),
        ((), UNKNOWN),
    ):
        legal = lp.legal(function, "f32[512,128]", "s32[64]", target="v5e", parameters={"rows": sizes}, assume=assume)
        found = [legal(rows=rows).rules for rows in sizes]
        assert found == ([PROVED] + [UNKNOWN] * 6 if verdict is None else [verdict] * 7), assume


def windows(x: Any, *, rows: int, limit: int, buffers: int, turned: bool) -> Any:
    """Twice an array, with the memory, the buffers and the order of the grid that its caller wants."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    grid = (x.shape[0] // rows, x.shape[1] // 512)
    at = (lambda i, j: (j, i)) if turned else lambda i, j: (i, j)
    return pl.pallas_call(
        body,
        grid=grid[::-1] if turned else grid,
        in_specs=[pl.BlockSpec((rows, 512), at, pipeline_mode=pl.Buffered(buffers))],
        out_specs=pl.BlockSpec((rows, 512), at),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=limit),
    )(x)


def test_memory_buffers_and_the_order_of_the_grid_are_parameters_like_others() -> None:
    parameters = {"rows": [512, 2048], "limit": [1 << 23, 1 << 25], "buffers": [1, 2, 3], "turned": [0, 1]}
    legal = lp.legal(windows, "f32[8192,4096]", target="v5e", parameters=parameters)
    said = {}
    for configuration in every(parameters):
        found = legal(**configuration)
        assert found.rules is by_kernels(windows, ["f32[8192,4096]"], configuration), configuration
        assert found.vmem_limit == configuration["limit"]
        said[tuple(configuration.values())] = found
    # 4 MiB a block: three of them in 8 MiB, three of them in 32 MiB; and the TPU has no third buffer
    assert said[2048, 1 << 23, 1, 0].rules is REFUTED
    assert said[2048, 1 << 25, 1, 0].rules is PROVED
    assert said[512, 1 << 25, 3, 0].rules is REFUTED
    assert [said[512, 1 << 25, n, 1].vmem_estimate for n in (1, 2)] == [3 << 20, 4 << 20]


def flash_of_jax(q: Any, k: Any, v: Any, *, rows: int, major: int, columns: int, batch: int) -> Any:
    """JAX's flash attention; a batch of more than one is unrolled in its body."""
    from jax.experimental.pallas.ops.tpu import flash_attention as fa

    return fa.flash_attention(q, k, v, causal=True, block_sizes=fa.BlockSizes(rows, major, columns, batch))


@pytest.mark.parametrize("first", [{}, {"rows": 128, "major": 128, "columns": 128, "batch": 1}])
def test_products_of_an_unrolled_loop_are_held_at_once(first: dict[str, int]) -> None:
    """libtpu 0.0.52: 21.77 of 16 MiB for two of 8 MiB each; it takes one of 4 MiB."""
    sizes = {"rows": [128, 512, 1024], "major": [128, 2048], "columns": [128, 2048], "batch": [1, 2]}
    legal = lp.legal(flash_of_jax, *["bf16[2,4,2048,128]"] * 3, target="v5e", parameters=sizes)
    if first:
        assert legal(**first).verdict is PROVED
    both = legal(rows=1024, major=2048, columns=2048, batch=2)
    assert (both.verdict, both.rules) == (UNKNOWN, PROVED)
    assert legal(rows=512, major=2048, columns=2048, batch=1).verdict is PROVED


def ragged_of_jax(q: Any, kv: Any, lengths: Any, pages: Any, starts: Any, many: Any, *, block: int, rows: int) -> Any:
    """JAX's ragged paged attention: its products have four rows for each query, and 32 columns for each page."""
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import kernel as rk

    return rk.ragged_paged_attention(
        q, kv, lengths, pages, starts, many, num_kv_pages_per_block=block, num_queries_per_block=rows
    )


RAGGED = ("bf16[512,16,128]", "bf16[1024,32,8,128]", "s32[64]", "s32[64,64]", "s32[65]", "s32[1]")


def test_products_are_bounded_by_those_of_others_that_decide_alike() -> None:
    """libtpu 0.0.52 takes the first two and the last, and refuses the others: 32.11 and 39.39 of 32 MiB."""
    legal = lp.legal(ragged_of_jax, *RAGGED, target="v6e", parameters={"block": [1, 32], "rows": [8, 512]})
    said = [legal(block=b, rows=r) for b, r in ((1, 8), (1, 512), (32, 256), (16, 512), (4, 512))]
    assert [found.verdict for found in said] == [PROVED, PROVED, UNKNOWN, UNKNOWN, PROVED]
    assert {found.rules for found in said} == {PROVED}


def grouped_of_jax(x: Any, y: Any, sizes: Any, *, tm: int, tk: int, tn: int) -> Any:
    """JAX's grouped product: its program computes tables, and then makes the call."""
    import importlib

    made = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")
    return made.gmm(x, y, sizes, tiling=(tm, tk, tn))


def test_a_call_that_comes_last_in_its_program() -> None:
    """libtpu 0.0.52 refuses the first two, of which no windows of results can be spared, and takes the third."""
    assume = ["0 <= prefetch1 < 8", "0 <= prefetch2 < 2048 // tm", "prefetch2 is monotone", "prefetch2[:grid1] is onto"]
    legal = lp.legal(
        grouped_of_jax, "bf16[2048,1024]", "bf16[8,1024,2048]", "s32[8]", target="v5e",
        parameters={"tm": [1024, 2048], "tk": [128], "tn": [1024, 2048]},
        assume=assume, where="grid1 <= 2048 // tm + 7",
    )  # fmt: skip
    said = [legal(tm=tm, tk=128, tn=tn) for tm, tn in ((2048, 1024), (1024, 2048), (1024, 1024))]
    assert [found.verdict for found in said] == [REFUTED, REFUTED, PROVED]
    assert [found.question for found in said] == [MEMORY, MEMORY, ""]
