"""Whether JAX takes an array for one that is sharded alike and spelled otherwise, without compiling again.

A jitted function caches compiled programs by the spelling of the shardings of its arguments. The effect of another
spelling was measured on jax 0.10.2 and 0.12.0.1, on eight devices of the CPU: traces, lowerings and
compilations of a second call (tests/programs/test_spelling.py does so again with the jax that is installed).

- Trailing None, `P('data')` for `P('data', None)`: nothing is compiled; the first call dispatches slowly.
- Axes of size 1 that are named or not: the same where the mesh's axes are Auto, compiled again where one is Explicit.
- Another mesh, by the names, the sizes or the types of its axes, or another placement: compiled again.
"""

from __future__ import annotations

from layoutproof.core.result import Verdict
from layoutproof.layouts.sharding.jax_text import PartitionSpecText, parts_of
from layoutproof.layouts.sharding.model import Mesh
from layoutproof.programs import problems

MEASURED = ("0.10.", "0.12.")
"""Versions of JAX that were asked, by their beginning."""
SLOW = problems.SPELLED_SLOWLY()


def taken(given: str, wanted: str, jax: str) -> tuple[Verdict, str]:
    """Whether a call with a sharding finds what was compiled for another, and why or what it costs.

    given, wanted: as JAX prints them, `P('x', None) on x=2,y=4`.  jax: its version.
    Raises LayoutError for what is no sharding.

    >>> taken("P('x') on x=2,y=4", "P('x', None) on x=2,y=4", "0.12.0")[0]
    <Verdict.PROVED: 'proved'>
    >>> taken("P('x') on x=2,z=4", "P('x') on x=2,y=4", "0.12.0")
    (<Verdict.REFUTED: 'refuted'>, 'another mesh, x=2,z=4 and not x=2,y=4: JAX compiles again')
    """
    (one, mesh, types), (two, other, kinds) = parts_of(given), parts_of(wanted)
    if (mesh.names, mesh.tiles) != (other.names, other.tiles):
        return Verdict.REFUTED, problems.OTHER_MESH(_mesh(mesh), _mesh(other))
    if types and kinds and types != kinds:
        said = f"axes that are {', '.join(types)} and not {', '.join(kinds)}"
        return Verdict.REFUTED, problems.OTHER_MESH_TYPES(said)
    if _placed(one, mesh) != _placed(two, mesh):
        return Verdict.REFUTED, problems.OTHER_PLACEMENT()
    if _entries(one) == _entries(two):
        return Verdict.PROVED, ""
    if not jax.startswith(MEASURED):
        return Verdict.UNKNOWN, problems.NOT_MEASURED(jax or "of an unknown version")
    if "Explicit" in (*types, *kinds) and _entries(one, True) != _entries(two, True):
        why = problems.EXPLICIT_AXIS()
        return Verdict.REFUTED, why
    return Verdict.PROVED, SLOW


Entries = tuple[tuple[str, ...], ...]


def _entries(spec: PartitionSpecText, short: bool = False) -> tuple[Entries, tuple[str, ...], tuple[str, ...], str]:
    """The entries of a specification. short: without trailing entries of no axis."""
    found = [(each,) if isinstance(each, str) else each or () for each in spec.entries]
    while short and found and not found[-1]:
        found.pop()
    return tuple(found), tuple(sorted(spec.unreduced)), tuple(sorted(spec.reduced)), spec.reduction


def _placed(spec: PartitionSpecText, mesh: Mesh) -> tuple[object, ...]:
    """The same of the axes that have more than one device."""
    sizes = dict(zip(mesh.names, mesh.tiles.dims, strict=True))
    entries, unreduced, _, reduction = _entries(spec)
    kept = [tuple(axis for axis in each if sizes[axis] > 1) for each in entries]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept), tuple(axis for axis in unreduced if sizes[axis] > 1), reduction


def _mesh(mesh: Mesh) -> str:
    return ",".join(f"{name}={size}" for name, size in zip(mesh.names, mesh.tiles.dims, strict=True)) or "no axes"
