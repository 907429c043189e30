"""The one file that knows where JAX keeps things, and what moves between its versions.

Read from jax 0.10.2 (Python 3.11) and jax 0.12.0.1 (Python 3.12): a block mapping's `index_map_jaxpr` is a ClosedJaxpr
in the first and a Jaxpr in the second; block dimensions are ints, None or objects in the first, always objects later.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from layoutproof.core.errors import LayoutError

KNOWN = ((0, 10), (0, 11), (0, 12))
"""Versions of JAX (major, minor) whose Pallas calls are read; 0.10.2 and 0.12.0.1 were tried."""

KINDS = {
    "v2": ("TPU v2", 1), "v3": ("TPU v3", 1), "v4lite": ("TPU v4 lite", 1), "v4": ("TPU v4", 2),
    "v5e": ("TPU v5 lite", 1), "v5p": ("TPU v5", 2), "v6e": ("TPU v6 lite", 1), "7x": ("TPU7x", 1),
}  # fmt: skip
"""Generation -> (device kind as JAX spells it, cores that one call may use)."""


def need_jax() -> Any:
    """The jax module. LayoutError where it is missing or of a version that nobody has tried."""
    try:
        import jax
    except ImportError as error:
        raise LayoutError(f"finding Pallas calls needs jax: pip install 'layoutproof[jax]' ({error})") from None
    version = tuple(int(part) for part in jax.__version__.split(".")[:2])
    if version not in KNOWN:
        known = ", ".join(f"{a}.{b}" for a, b in KNOWN)
        raise LayoutError(f"jax {jax.__version__}: Pallas calls are read from jax {known}")
    return jax


def opened(jaxpr: Any) -> tuple[Any, tuple[Any, ...]]:
    """(the jaxpr, values of its constants), from a ClosedJaxpr or a Jaxpr."""
    inner = jaxpr.jaxpr if hasattr(jaxpr, "jaxpr") else jaxpr
    return inner, tuple(getattr(jaxpr, "consts", ()))


def inner_jaxprs(params: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every jaxpr among an equation's parameters, also in tuples: (parameter name, jaxpr)."""
    for name, value in params.items():
        for entry in value if isinstance(value, tuple | list) else (value,):
            if hasattr(entry, "eqns") or hasattr(getattr(entry, "jaxpr", None), "eqns"):
                yield name, entry


@contextlib.contextmanager
def device_of(target: str) -> Iterator[None]:
    """Within it JAX believes that it runs on one core of this generation, which kernels ask for their block sizes."""
    jax = need_jax()
    from jax.sharding import AbstractMesh

    mesh_module = importlib.import_module("jax._src.mesh")
    if target not in KINDS:
        yield
        return
    kind, cores = KINDS[target]
    device = mesh_module.AbstractDevice(device_kind=kind, num_cores=cores, platform="tpu")
    mesh = AbstractMesh((1,), ("_device",), abstract_device=device)
    use = getattr(jax.sharding, "use_abstract_mesh", None) or mesh_module.use_abstract_mesh
    with use(mesh):
        yield


def place_of(source_info: Any) -> str:
    """`file:line` of the user's frame of an equation, "" where there is none."""
    util = importlib.import_module("jax._src.source_info_util")
    with contextlib.suppress(Exception):
        frame = util.user_frame(source_info.traceback)
        if frame is not None:
            return f"{frame.file_name}:{frame.start_line}"
    return ""


def place_of_function(debug_info: Any) -> str:
    """`file:line` out of JAX's description of a traced function, `<lambda> at file.py:12`."""
    text = str(getattr(debug_info, "func_src_info", "") or "")
    return text.rpartition(" at ")[2] if " at " in text else ""


def is_pallas_call(params: dict[str, Any]) -> bool:
    """Whether an equation is a call with grid and block mappings."""
    return hasattr(params.get("grid_mapping"), "block_mappings")


@contextlib.contextmanager
def calls_traced(callback: Callable[[Any], None]) -> Iterator[None]:
    """Within it `callback(parameters)` sees every pallas_call that is bound, before JAX goes on with it."""
    need_jax()
    module = importlib.import_module("jax._src.pallas.pallas_call")
    primitive = module.pallas_call_p
    original = primitive.bind

    def bind(*args: Any, **params: Any) -> Any:
        callback(params)
        return original(*args, **params)

    primitive.bind = bind
    try:
        yield
    finally:
        # the instance attribute hides the method; without it the method is back
        del primitive.bind


@contextlib.contextmanager
def pipelines_traced(callback: Callable[..., None]) -> Iterator[None]:
    """Within it `callback(arguments of emit_pipeline, references it is called with)` sees every pipeline traced."""
    need_jax()
    module = importlib.import_module("jax._src.pallas.mosaic.pipeline")
    original = getattr(module, "_emit_pipeline")  # noqa: B009 (a private name that mypy does not know)

    def emit(body: Any, **options: Any) -> Any:
        pipeline = original(body, **options)

        def called(*refs: Any, **more: Any) -> Any:
            callback(options, refs)
            return pipeline(*refs, **more)

        return called

    setattr(module, "_emit_pipeline", emit)  # noqa: B010
    try:
        yield
    finally:
        setattr(module, "_emit_pipeline", original)  # noqa: B010
