"""The mistake in a layout, if any, and its kind.

TVM's `verify_well_formed` looks at the chain of scopes only: it accepts layouts that put two elements at one place,
replicas that collide, lanes beyond 31.
"""

from __future__ import annotations

from typing import Any

from layoutproof.algebra.axe.canonical_form import canonical, fibers_disjoint, injective, replicas_distinct
from layoutproof.algebra.axe.scopes import EXTENTS, THREADS, owns
from layoutproof.core.errors import Reason, Undecided
from layoutproof.core.progressions import low_high
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, axis_iters, constant


def problems(layout: AxeLayout) -> tuple[Reason, ...]:
    """Everything that is wrong: elements or replicas that share a place, coordinates outside the hardware, scopes.

    Requires constants. The empty tuple is a proof that none of it is.

    Args:
        layout: An Axe layout.

    Returns:
        One reason each.

    >>> [str(p) for p in problems(AxeLayout(((4, 1, "m"), (4, 1, "m"))))]
    ['two elements share a place']
    >>> [str(p) for p in problems(AxeLayout(((64, 1, "laneid"),)))]
    ['laneid goes from 0 to 63, outside 0..31']
    """
    constant(layout)
    found: list[Reason] = []
    try:
        if not injective(layout):
            found.append(Reason("two elements share a place"))
        elif not fibers_disjoint(layout):
            found.append(Reason("a replica of one element is at the place of another element"))
        if not replicas_distinct(layout):
            found.append(Reason("two replicas of an element are at one place"))
    except Undecided as undecided:
        found.append(Reason(f"not decided: {undecided}"))
    for axis in layout.axes():
        least, most = low_high(*axis_iters(layout, axis))
        extent: Any = (layout.within or {}).get(axis, EXTENTS.get(axis))
        if extent is None:
            if least < 0:
                found.append(Reason(f"{axis} goes from {least} to {most}, below 0"))
        elif least < 0 or most >= extent:
            found.append(Reason(f"{axis} goes from {least} to {most}, outside 0..{extent - 1}"))
    scope = scope_of(layout)
    return (*found, scope) if isinstance(scope, Reason) else tuple(found)


def scope_of(layout: AxeLayout) -> tuple[str, str] | Reason | None:
    """(innermost, outermost) scope that the thread axes connect; None without thread axes (TVM: `get_scope`).

    Args:
        layout: An Axe layout.

    Returns:
        None without thread axes; the reason where they connect none.

    >>> scope_of(AxeLayout(((2, 1, "warpid"), (32, 1, "laneid"), (2, 1, "m"))))
    ('thread', 'cta')
    >>> str(scope_of(AxeLayout(((2, 1, "wgid"), (32, 1, "laneid")))))
    'the scopes of wgid, laneid do not connect'
    """
    axes = [axis for axis in layout.axes() if axis in THREADS]
    if not axes:
        return None
    above: dict[str, str] = {}
    for axis in axes:
        scope, subscope = THREADS[axis]
        if above.setdefault(subscope, scope) != scope:
            return Reason(f"{axis} numbers the {subscope}s of a {scope}, but another axis those of a {above[subscope]}")
    inner = next(iter(set(above) - set(above.values())))
    outer, steps = inner, 0
    while outer in above:
        outer, steps = above[outer], steps + 1
    if steps != len(above):
        return Reason(f"the scopes of {', '.join(axes)} do not connect")
    return inner, outer


def is_trivial(layout: AxeLayout) -> bool:
    """Whether index x is at place x of one memory axis, and nothing else (TVM: `is_trivial`).

    Args:
        layout: An Axe layout.

    Returns:
        True or False.

    >>> is_trivial(AxeLayout(((4, 8, "m"), (8, 1, "m")))), is_trivial(AxeLayout(((4, 2, "m"),)))
    (True, False)
    """
    form = canonical(AxeLayout(layout.D, layout.R, layout.O))
    plain = not form.R and not form.O and layout.swizzle is None
    return plain and len(form.D) == 1 and form.D[0][1] == 1 and owns(form.D[0][2]) is False


def is_swizzle(layout: AxeLayout) -> bool:
    """Whether it is nothing but a swizzle, over the identity (TVM: `is_swizzle`).

    Args:
        layout: An Axe layout.

    Returns:
        True or False.

    >>> from layoutproof.layouts.axe.swizzle import Swizzle
    >>> is_swizzle(AxeLayout(((512, 1, "m"),), swizzle=Swizzle(3, 3, 3)))
    True
    """
    return layout.swizzle is not None and is_trivial(AxeLayout(layout.D, layout.R, layout.O))


def widened(layout: AxeLayout, count: int) -> AxeLayout:
    """A bare swizzle over `count` elements; any other layout as it is.

    TVM reads a swizzle over S[n:1] as a swizzle of whatever size is asked about; here that is asked for by name.

    Args:
        layout: An Axe layout.
        count: Elements of the swizzle.

    Returns:
        The layout.

    >>> from layoutproof.layouts.axe.swizzle import Swizzle
    >>> str(widened(AxeLayout(((512, 1, "m"),), swizzle=Swizzle(3, 3, 3)), 4096))
    'S[4096:1] swizzle (3,3,3)'
    """
    if not is_swizzle(layout) or layout.size() == count:
        return layout
    return AxeLayout(((count, 1, MEMORY),), swizzle=layout.swizzle)


def is_trainium(layout: AxeLayout) -> bool:
    """Whether the only memory axes are a Trainium scratchpad's, P, F and Bank (TVM: `is_trainium`).

    Args:
        layout: An Axe layout.

    Returns:
        True or False.

    >>> is_trainium(AxeLayout(((128, 1, "P"), (512, 1, "F")))), is_trainium(AxeLayout(((8, 1, "m"),)))
    (True, False)
    """
    return all(axis in ("P", "F", "Bank") or owns(axis) for _, _, axis in layout.D)
