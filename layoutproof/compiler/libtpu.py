"""The real TPU compiler, libtpu: it compiles ahead of time on any CPU, for chips that are not there.

It can abort its process (libtpu 0.0.42.1 does on what it was never asked before), so it is only ever imported by a
process of its own; see `child`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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
"""What a process has to have in its environment for that."""


def missing() -> str:
    """What has to be installed before it can be asked, and how; "" for nothing."""
    names = [name for name in ("jax", "libtpu") if importlib.util.find_spec(name) is None]
    return f"no {', '.join(names)} (pip install {' '.join(names)})" if names else ""


def version() -> str:
    """The installed compiler with its version."""
    try:
        return f"libtpu {importlib.metadata.version('libtpu')}"
    except importlib.metadata.PackageNotFoundError:
        return "libtpu"


def device(topology: str, **options: Any) -> Any:
    """One chip of a topology, by the compiler's own name for it, as JAX has devices. In a process of its own only."""
    from jax.experimental.topologies import get_topology_desc

    bounds = {"chips_per_host_bounds": (1, 1, 1), **options}
    return get_topology_desc(platform="tpu", topology_name=topology, **bounds).devices[0]
