"""Sites of a file by its syntax: under every name that imports and assignments give them, and nothing else."""

from __future__ import annotations

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.scanning.module import SourceSite, module_of

PL = "from jax.experimental import pallas as pl\n"


def sites(text: str, **options: dict[str, str]) -> list[tuple[str, int, str, str]]:
    """(kind, line, hardware, where) of each site."""
    found = module_of(text.encode(), "pkg.a", "pkg/a.py", **options).sites
    return [(site.kind, site.line, site.hardware, site.inside) for site in found]


@pytest.mark.parametrize(
    "text",
    [
        f"{PL}def f(x):\n    return pl.pallas_call(body)(x)",
        "import jax.experimental.pallas as q\ndef f(x):\n    return q.pallas_call(body)(x)",
        "import jax\ndef f(x):\n    return jax.experimental.pallas.pallas_call(body)(x)",
        "from jax.experimental.pallas import pallas_call as run\ndef f(x):\n    return run(body)(x)",
        "from .compat import pl\ndef f(x):\n    return pl.pallas_call(body)(x)",
        f"import functools\n{PL.strip()};\ndef f(x): return functools.partial(pl.pallas_call, grid=1)(body)(x)",
    ],
)
def test_every_spelling_of_one_call(text: str) -> None:
    """By module, by name, by an alias, through a module of the project, applied in part: once, in its function."""
    assert [(kind, line, where) for kind, line, _, where in sites(text)] == [("pallas_call", 3, "f")]


def test_what_is_no_call() -> None:
    """Texts, comments, imports, a function of one's own that is called so, a method, a mention."""
    text = '"""pallas_call(x)"""\n# pallas_call(x)\nfrom a import pallas_call as p\n'
    text += "def pallas_call(x): return x\npallas_call(1)\nself.pallas_call(2)\nprint(p)\n"
    assert sites(text) == []


def test_a_partial_application_counts_where_it_is_called() -> None:
    """With a name, each of its calls; without a call, where it is written."""
    named = f"{PL}from functools import partial\nrun = partial(pl.pallas_call, grid=(1,))\n"
    assert [line for _, line, _, _ in sites(named)] == [3]
    assert [line for _, line, _, _ in sites(f"{named}def f(): run(a)\ndef g(): run(b)\n")] == [4, 5]


def test_one_of_two_and_a_name_of_another_module() -> None:
    """`call = a if x else b`, and `pkg.compat.call`, which the tree knows."""
    assert len(sites(f"{PL}call = pl.pallas_call if new else old\ncall(body)\n")) == 1
    text = "from pkg.compat import call\ncall(body)\n"
    assert sites(text) == []
    assert len(sites(text, also={"pkg.compat.call": "jax.experimental.pallas.pallas_call"})) == 1


def test_kernels_by_hardware() -> None:
    """By what the call says, else by the one hardware that the file imports; of several nothing is said."""
    tpu = "from jax.experimental.pallas import tpu as pltpu\n"
    gpu = "from jax.experimental.pallas import mosaic_gpu as plgpu\n"
    core = "from jax.experimental.pallas import tpu_sc as plsc\n"
    assert sites(f"{PL}{tpu}pl.pallas_call(body)")[0][2] == "TPU"
    assert sites(f"{PL}{tpu}{gpu}pl.pallas_call(body)")[0][2] == ""
    assert sites(f"{PL}{tpu}{gpu}pl.pallas_call(body, compiler_params=plgpu.CompilerParams())")[0][2] == "GPU"
    assert sites(f"{PL}{tpu}{core}@pl.kernel(mesh=plsc.VectorSubcoreMesh())\ndef f(x): ...") == [
        ("pl.kernel", 4, "SparseCore", "f")
    ]
    assert sites(f"{gpu}plgpu.kernel(body)")[0][:3] == ("pl.kernel", 2, "GPU")
    # a function of another library that is called kernel is none
    assert sites("import gp\ngp.kernel(1)") == []


def test_shardings_and_layouts() -> None:
    """Each by its kind, also as a decorator, bare or applied in part."""
    text = (
        "import jax, functools\nfrom jax.sharding import PartitionSpec as P, NamedSharding\n"
        "from jax.experimental.layout import Layout\n"
        "@functools.partial(jax.shard_map, mesh=m, in_specs=P('x'), out_specs=P())\ndef f(x): ...\n"
        "@jax.shard_map\ndef g(x): return jax.lax.with_sharding_constraint(x, NamedSharding(m, P('x')))\n"
        "a = Layout((0, 1)), 'bf16[8,128]{1,0:T(8,128)(2,1)}', '(3,5):(5,1)', 'S[(3,5):(5,1)]', 'a b:c', 'f32[3]'\n"
    )
    kinds = [kind for kind, *_ in sites(text)]
    assert kinds.count("shard_map") == 2
    assert kinds.count("PartitionSpec") == 3
    assert kinds.count("layout text") == 3
    assert {"sharding", "sharding constraint", "layout"} <= set(kinds)


def test_syntax_of_a_newer_python() -> None:
    """Type parameters over several lines and `type` statements: the lines stay what they are."""
    text = f"{PL}type X = int\nclass A[\n    T: (int, str),\n    *U,\n](list): ...\ndef f[T: dict[str, int]](x: T):\n"
    text += "    return pl.pallas_call(body)(x)\n"
    assert sites(text) == [("pallas_call", 8, "", "f")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"print 'pallas_call'\n", "it mentions pallas_call 1 times"),
        (b"x = '\xff'\n", "cannot be parsed"),
        ("x = 1\n".encode("utf-16"), "cannot be parsed"),
        (b"\0", "cannot be parsed"),
        (b"(" * 5000, "cannot be parsed"),
    ],
)
def test_what_cannot_be_parsed_says_so(data: bytes, said: str) -> None:
    """Another Python, another encoding, no text: one error with the file, never a traceback."""
    with pytest.raises(LayoutError, match=said):
        module_of(data, "a", "a.py")


def test_encodings_that_python_knows() -> None:
    """A declared one, and the mark of UTF-8."""
    latin = "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1")
    assert module_of(latin, "a", "a.py").sites == ()
    assert module_of(b"\xef\xbb\xbfx = 1\n", "a", "a.py").sites == ()


def test_a_sum_of_many_parts() -> None:
    """Nested as deep as it is long: no recursion of ours."""
    text = f"{PL}x = " + " + ".join(["1"] * 900) + "\npl.pallas_call(body)\n"
    assert module_of(text.encode(), "a", "a.py").sites == (SourceSite("pallas_call", 3),)
