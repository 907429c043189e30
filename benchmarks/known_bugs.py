"""Whether the known bugs that a CPU shows are in the installed JAX: `python benchmarks/known_bugs.py`.

Each program is the one of its thread, and runs in a process of its own, since some end it. Prints a line for each:
the bug, what came of it, and what the table of `layoutproof/known_bugs/bugs.py` says of this version.

Exit code: 0, the table says what was seen; 1, it does not, and an entry is to be changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from layoutproof.known_bugs.ask import installed  # noqa: E402
from layoutproof.known_bugs.bug import has  # noqa: E402
from layoutproof.known_bugs.bugs import BUGS  # noqa: E402

SECONDS = 120


def dynamic_update_slice() -> bool:
    """openxla/xla#49118."""
    import jax
    import jax.numpy as jnp

    cut, whole = _shardings()
    f = lambda x, u, s: jax.lax.dynamic_update_slice(x, u, [jnp.int32(0), s])  # noqa: E731
    given = (jnp.arange(4, dtype=jnp.int32).reshape(2, 2), jnp.full((2, 1), 99, jnp.int32), jnp.int32(2))
    partitioned = jax.jit(f, in_shardings=(cut, whole, whole), out_shardings=cut)
    return jax.jit(f)(*given).tolist() == partitioned(*given).tolist()


def dynamic_slice() -> bool:
    """openxla/xla#49122."""
    import jax
    import jax.numpy as jnp

    cut, whole = _shardings()
    f = lambda x, s: jax.lax.dynamic_slice(x, [jnp.int32(0), s], (2, 6))  # noqa: E731
    given = (jnp.arange(16, dtype=jnp.int32).reshape(2, 8), jnp.int32(7))
    return jax.jit(f)(*given).tolist() == jax.jit(f, in_shardings=(cut, whole), out_shardings=cut)(*given).tolist()


def shifted_update() -> bool:
    """openxla/xla#49176."""
    import jax
    import numpy as np

    def f(x: jax.Array) -> jax.Array:
        base = x + np.int32(1)
        return jax.lax.dynamic_update_slice(base, base[:3], (1, 0, 0)).reshape((1, 4, 1))

    return np.asarray(jax.jit(f)(np.arange(4, dtype=np.int32).reshape(4, 1, 1))).ravel().tolist() == [1, 1, 2, 3]


def vmapped_product() -> bool:
    """jax-ml/jax#39103."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    i = jnp.arange(32769, dtype=jnp.float32)
    matrix = jnp.eye(3)
    f = jax.jit(jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2)))
    found = f(jnp.stack((i, jnp.zeros_like(i), jnp.zeros_like(i)), axis=1))
    return bool(np.allclose(found, np.arange(32769.0) ** 2, rtol=1e-5))


def eight_dimensions() -> bool:
    """jax-ml/jax#39257."""
    import jax
    import jax.numpy as jnp

    f = lambda o, a: jnp.log(jnp.maximum(jnp.sum(o[..., None, None, None, None, None] * a, axis=2), 2e-16))  # noqa: E731
    return bool(jax.jit(f)(jnp.ones((10, 4, 6)), jnp.ones((10, 4, 6, 9, 9, 9, 9, 9))).min() > 1)


def seven_dimensions() -> bool:
    """jax-ml/jax#40412."""
    import jax
    import jax.numpy as jnp

    u = jnp.ones((3, 1, 2, 2, 8, 8, 8))
    return bool((jax.jit(lambda a, b: jnp.sum(a * b, axis=3))(u, u) == 2).all())


def loop_update() -> bool:
    """jax-ml/jax#40101: linear in the trip count."""
    import time

    import jax
    import jax.numpy as jnp

    many = 50_000
    f = jax.jit(lambda x: jax.lax.fori_loop(0, many, lambda t, a: a.at[t + 1].set(a[t] + 1), jnp.zeros(many + 1) + x))
    f(1.0).block_until_ready()
    start = time.perf_counter()
    f(1.0).block_until_ready()
    return time.perf_counter() - start < 0.5


def concatenations() -> bool:
    """jax-ml/jax#39301."""
    import jax
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    cut = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("d",)), PartitionSpec("d"))
    x = jax.device_put(np.arange(4.0, dtype=np.float32), cut)

    def part(x: jax.Array, low: int, high: int) -> jax.Array:
        return lax.pad(x, np.float32(0), [(low, high, 0)])

    def f(x: jax.Array) -> jax.Array:
        one = lax.concatenate([part(x, -3, 0), part(x, 0, -1)], 0)
        return one + lax.concatenate([part(x, -1, 0), part(x, 0, -3)], 0)

    return np.asarray(jax.jit(f)(x)).tolist() == [4.0, 2.0, 4.0, 2.0]


PROGRAMS: dict[str, Callable[[], bool]] = {
    "xla-49118": dynamic_update_slice,
    "xla-49122": dynamic_slice,
    "jax-39301": concatenations,
    "xla-49176": shifted_update,
    "jax-39103": vmapped_product,
    "jax-39257": eight_dimensions,
    "jax-40412": seven_dimensions,
    "jax-40101": loop_update,
}


def _shardings() -> tuple[object, object]:
    """(columns over two devices, all on each)."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices("cpu")[:2])
    return NamedSharding(mesh, PartitionSpec(None, "x")), NamedSharding(mesh, PartitionSpec())


def outcome(name: str) -> str:
    """What came of one program: "right", "wrong", "ended", "refused" or "slow"."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    try:
        done = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, timeout=SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return "slow"
    if done.returncode < 0:
        return "ended"
    return done.stdout.strip().rpartition("\n")[2] if done.returncode == 0 else "refused"


def main() -> int:
    """Run every program, or the one that is named."""
    if len(sys.argv) > 1:
        print("right" if PROGRAMS[sys.argv[1]]() else "wrong")
        return 0
    versions, bad = installed(), 0
    bugs = {bug.name: bug for bug in BUGS}
    for name in PROGRAMS:
        bug, came = bugs[name], outcome(name)
        said = has(bug, versions.get(bug.package, ""))
        wrong = said is not None and (came == "right") == said
        bad += wrong
        word = {True: "has it", False: "has it not", None: "nobody looked"}[said]
        print(f"{name:<12} {came:<8} {bug.package} {versions.get(bug.package)} {word}{'   CHANGE IT' if wrong else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
