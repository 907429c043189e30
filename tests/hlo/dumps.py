"""What the tests of the HLO audit share: the real dumps, and one small program of our own."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = """HloModule small, is_scheduled=true, entry_computation_layout=\
{(f32[8,256]{1,0:T(8,128)})->f32[256,8]{1,0:T(8,128)}}

FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%double (p: f32[8,256]) -> f32[8,256] {
  %p = f32[8,256]{1,0:T(8,128)} parameter(0)
  ROOT %add.1 = f32[8,256]{1,0:T(8,128)} add(%p, %p), metadata={op_name="f/add" stack_frame_id=1}
}

ENTRY %main (x: f32[8,256]) -> f32[256,8] {
  %x = f32[8,256]{1,0:T(8,128)} parameter(0), sharding={replicated}, metadata={op_name="x"}
  %fusion = f32[8,256]{1,0:T(8,128)} fusion(%x), kind=kLoop, calls=%double, metadata={op_name="f/add" stack_frame_id=1}
  %bitcast.1 = f32[256,8]{0,1:T(8,128)} bitcast(%fusion)
  ROOT %copy.1 = f32[256,8]{1,0:T(8,128)} copy(%bitcast.1), metadata={op_name="f/transpose" stack_frame_id=1}
}
"""
"""A fusion, a bitcast that is a transpose, and a copy to another layout."""


PROGRAM = """
import sys
import jax
import jax.numpy as jnp

def f(x, y):
    z = jnp.tanh(x @ y).T
    _, c = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2.0 + z.sum()), (0, x))
    return jnp.sort(c, 0), z.reshape(-1), c.astype(jnp.bfloat16), jnp.einsum("ij,kj->ki", c, c), (x > 0)

args = jax.ShapeDtypeStruct((16, 33), "float32"), jax.ShapeDtypeStruct((33, 24), "float32")
print(jax.jit(f).lower(*args).compile().as_text())
"""


@functools.cache
def dump_on_cpu(folder: Path) -> str:
    """Compiles a program for the CPU in a process of its own, its dumps into `folder`; its text."""
    pytest.importorskip("jax")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=layout.*"
    environment = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PATH": "", "HOME": str(folder)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    return done.stdout
