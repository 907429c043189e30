"""The real TPU compiler, libtpu: it compiles ahead of time on any CPU, for chips that are not there.

It can abort its process (libtpu 0.0.42.1 does on what it was never asked before), so it is only ever imported by a
process of its own; see `child`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from layoutproof.compiler import problems
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import lines
from layoutproof.core.packages import package_version

if TYPE_CHECKING:
    from jax import Device
    from jax.stages import Lowered

WHAT = "the TPU compiler"

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_LOG_DIR": "disabled",
        # otherwise the compiler serves one process of a machine only
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
)
"""The environment variables for that."""


LIBRARY = "TPU_LIBRARY_PATH"
"""JAX's variable with the path of a libtpu.so other than the installed one."""
FLAGS = "LIBTPU_INIT_ARGS"
"""The compiler's variable with its flags, on which its answers depend."""
_SCOPED = re.compile(r"--xla_tpu_scoped_vmem_limit_kib=(\d+)")


def environment(library: str = "") -> Mapping[str, str]:
    """The environment variables of a process that asks the compiler. library: as `library_at` gives it."""
    return MappingProxyType({**ENVIRONMENT, LIBRARY: library}) if library else ENVIRONMENT


def library_at(path: str | os.PathLike[str]) -> str:
    """The path of the compiler in a file, a folder, or a folder into which pip installed it (`pip install --target`).

    Raises LayoutError where there is none.
    """
    given = Path(path)
    for found in (given, given / "libtpu.so", given / "libtpu" / "libtpu.so"):
        if found.is_file():
            return str(found.resolve())
    where = shorten(str(path), 200)
    raise LayoutError(problems.NO_LIBTPU_AT(where))


def missing(library: str = "") -> str:
    """The missing packages for asking it, and how to install them; "" for none. library: as `library_at` gives it."""
    needed = ("jax",) if library or os.environ.get(LIBRARY) else ("jax", "libtpu")
    names = [name for name in needed if importlib.util.find_spec(name) is None]
    return f"no {', '.join(names)} (pip install {' '.join(names)})" if names else ""


def number(library: str = "") -> str:
    """The version of the compiler, "" if unknown. library: as `library_at` gives it, "" = the one in use."""
    used = library or os.environ.get(LIBRARY, "")
    if not used:
        return package_version("libtpu")
    beside = [str(Path(used).resolve().parent.parent)]
    return next((d.version for d in importlib.metadata.distributions(name="libtpu", path=beside)), "")


def told() -> str:
    """The flags that the environment of this process gives the compiler, "" for none."""
    return " ".join(os.environ.get(FLAGS, "").split())


def with_flags(name: str, flags: str) -> str:
    """The name of a compiler with the flags that it was given: with others it is, to who compares answers, another.

    >>> with_flags("libtpu 0.0.52", "--xla_tpu_scoped_vmem_limit_kib=65536")
    'libtpu 0.0.52 with --xla_tpu_scoped_vmem_limit_kib=65536'
    """
    return f"{name} with {flags}" if flags else name


def without_flags(name: str) -> str:
    """The same without them.

    >>> without_flags("libtpu 0.0.52 with --xla_tpu_scoped_vmem_limit_kib=65536")
    'libtpu 0.0.52'
    """
    return name.partition(" with ")[0]


def scoped_vmem(flags: str) -> int | None:
    """Bytes of VMEM that flags give a kernel that asks for none; None where they do not say.

    >>> scoped_vmem("--xla_tpu_scoped_vmem_limit_kib=65536")
    67108864
    """
    found = _SCOPED.findall(flags)
    return int(found[-1]) << 10 if found else None


def version(library: str = "") -> str:
    """The compiler with its version. library: as for `number`."""
    return f"libtpu {number(library)}".strip()


def topology_name(chip: str, extents: str) -> str:
    """The compiler's own name of a topology. chip: that of one chip.

    >>> topology_name("v4:1x1x1", "2x2"), topology_name("v5e:1x1", "4x8")
    ('v4:2x2x1', 'v5e:4x8')
    """
    kind, _, single = chip.partition(":")
    return f"{kind}:{extents}{'x1' * (single.count('x') - extents.count('x'))}"


def device(topology: str, **options: object) -> Device:
    """One chip of a topology, by the compiler's own name for it, as JAX has devices. In a process of its own only."""
    from jax.experimental.topologies import get_topology_desc

    bounds = {"chips_per_host_bounds": (1, 1, 1), **options}
    return get_topology_desc(platform="tpu", topology_name=topology, **bounds).devices[0]


def written_text(lowered: Lowered, flags: Mapping[str, str]) -> str:
    """The compiled text as the compiler itself writes it into a folder, "" where it writes none.

    The program is compiled once more for it. jaxlib 0.10.2 cannot read back some programs of libtpu 0.0.52
    (`async-update`, in those for SparseCores), though the compiler took them.

    lowered: what JAX lowered.  flags: the options that it is compiled with.
    """
    with tempfile.TemporaryDirectory() as folder, suppress(Exception):
        lowered.compile(compiler_options={**flags, "xla_dump_to": folder, "xla_dump_hlo_as_text": True})
        (path,) = Path(folder).glob("*.after_optimizations.txt")
        with lines(path) as found:
            return "".join(found)
    return ""
