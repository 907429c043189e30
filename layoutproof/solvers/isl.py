"""Exact integer sets (islpy): every quasi-affine claim, for constant and for run-time sizes alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import islpy as isl

from layoutproof.core.claim import All, Any_, At, Before, Claim, Differ, Formula, Holds, Outside, Same, Unreached
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.space import Space

BUDGET = 20_000_000
SET = isl.dim_type.set


def decide(claim: Claim, effort: int = 1) -> Point | None:
    budget = BUDGET * effort
    context = isl.Context()
    # the default of plain isl prints to stderr, and another setting of its own aborts the process
    context.set_on_error(isl.on_error.CONTINUE)
    context.set_max_operations(budget)
    try:
        return _decide(claim, context)
    except isl.Error as error:
        if "maximal number of operations" in str(error):
            raise Undecided(f"the budget of {budget} isl operations is spent") from None
        raise Undecided(f"isl cannot: {str(error).partition(' in /')[0]}") from None


def _decide(claim, context):
    names = claim.sizes()
    # max(sizes) goes first: lexmin then yields the smallest sizes
    labels = (["max"] if names else []) + list(names) + [f"{p}[{k}]" for p, s in claim.points.items() for k in range(len(s.extents))]
    frame = Frame(context, labels)
    sizes = {name: frame.variable(1 + k) for k, name in enumerate(names)}
    start = 1 + len(names) if names else 0
    points = {}
    for p, s in claim.points.items():
        points[p] = tuple(frame.variable(start + k) for k in range(len(s.extents)))
        start += len(s.extents)
    on = Affine(frame, sizes)
    bounds = [frame.all]
    for v in sizes.values():
        bounds += [on.less(0, v), on.opposite(on.less(frame.variable(0), v))]
    for p, s in claim.points.items():
        bounds += inside(points[p], s.extents, on)
    if claim.where is not None:
        bounds.append(on.truth(claim.where.evaluate({}, on)))
    context_set = reduce(isl.Set.intersect, bounds)
    bad = formula(claim.violation, points, on, context_set)
    if bad.is_empty():
        return None
    row = smallest(bad, len(labels))
    out = {}
    at = 0
    if names:
        out["sizes"] = row[1:1+len(names)]; at = 1 + len(names)
    for p, s in claim.points.items():
        out[p] = row[at:at+len(s.extents)]; at += len(s.extents)
    return out

def smallest(s, n):
    rows=[]
    for b in s.get_basic_sets():
        l = b.lexmin()
        if l.is_empty(): continue
        p = l.sample_point()
        rows.append(tuple(p.get_coordinate_val(SET,k).to_python() for k in range(n)))
    return min(rows)

def inside(point, extents, on):
    return [c for v, e in zip(point, extents, strict=True) for c in (on.truth(on.less(-1, v)), on.truth(on.less(v, on.size(e))))]

def formula(f, points, on, ctx):
    def at(w): return w.map.place(points[w.point], points[w.copy] if w.copy else (), on)
    match f:
        case Before(a, b):
            out = on.frame.none; eq = ctx
            for x, y in zip(points[a], points[b], strict=True):
                out = out.union(eq.intersect(on.truth(on.less(x, y))))
                eq = eq.intersect(on.truth(on.equal(x, y)))
            return out
        case Same(l, r):
            return reduce(isl.Set.intersect, [on.truth(on.equal(x, y)) for x, y in zip(at(l), at(r), strict=True)], ctx)
        case Differ(l, r):
            return reduce(isl.Set.union, [ctx.intersect(on.truth(on.opposite(on.equal(x, y)))) for x, y in zip(at(l), at(r), strict=True)], on.frame.none)
        case Outside(p, ext):
            ext = p.map.range.extents if ext is None else ext
            return reduce(isl.Set.union, [ctx.intersect(on.truth(on.opposite(c))) for c in inside(at(p), ext, on)], on.frame.none)
        case Holds(c): return ctx.intersect(on.truth(c.evaluate({}, on)))
        case All(ps):
            for p in ps: ctx = formula(p, points, on, ctx)
            return ctx
        case Any_(ps):
            return reduce(isl.Set.union, [formula(p, points, on, ctx) for p in ps], on.frame.none)
        case Unreached(m, p):
            frame = on.frame
            n=len(frame.labels); d=len(m.domain.extents); c=len(m.copies.extents)
            big = Frame(frame.context, frame.labels+[f"d{k}" for k in range(d)]+[f"c{k}" for k in range(c)])
            on2 = Affine(big, {k: big.variable(frame.labels.index(k)) for k in on.sizes})
            idx = tuple(big.variable(n+k) for k in range(d)); cp = tuple(big.variable(n+d+k) for k in range(c))
            cons = inside(idx, m.domain.extents, on2)+inside(cp, m.copies.extents, on2)
            tgt = [big.variable(frame.labels.index(f"{p}[{k}]")) for k in range(len(points[p]))]
            for x,y in zip(m.place(idx,cp,on2), tgt, strict=True): cons.append(on2.truth(on2.equal(x,y)))
            img = reduce(isl.Set.intersect, cons, big.all).project_out(SET, n, d+c)
            return ctx.subtract(isl.Set.from_basic_set(isl.BasicSet.universe(frame.space)).intersect(img.reset_space(frame.space) if 0 else img))

class Frame:
    def __init__(self, context, labels):
        self.context=context; self.labels=labels
        self.space = isl.Space.set_alloc(context, 0, len(labels))
        self.local = isl.LocalSpace.from_space(self.space)
        self.all = isl.Set.universe(self.space); self.none = isl.Set.empty(self.space)
    def variable(self, k): return Quasi(isl.PwAff.var_on_domain(self.local, SET, k), self)
    def val(self, n): return isl.Val(str(n), self.context) if abs(n)>=2**62 else isl.Val(n, self.context)
    def const(self, n): return isl.PwAff.val_on_domain(self.all, self.val(n))
    def lift(self, x): return x.pw if isinstance(x, Quasi) else self.const(x)

class Quasi:
    __slots__=("pw","frame")
    def __init__(s, pw, frame): s.pw=pw; s.frame=frame
    def _n(s, pw): return Quasi(pw, s.frame)
    def __add__(s,o):
        if type(o) is int: return s._n(s.pw.add_constant_val(s.frame.val(o)))
        return s._n(s.pw.add(o.pw))
    __radd__=__add__
    def __sub__(s,o): 
        if type(o) is int: return s+(-o)
        return s._n(s.pw.sub(o.pw))
    def __rsub__(s,o): return s._n(s.pw.neg())+o
    def __neg__(s): return s._n(s.pw.neg())
    def __mul__(s,o):
        if type(o) is int: return s._n(s.pw.scale_val(s.frame.val(o)))
        if not (s.pw.is_cst() or o.pw.is_cst()): raise Undecided("multiplies")
        return s._n(s.pw.mul(o.pw))
    __rmul__=__mul__
    def __floordiv__(s,o):
        if type(o) is not int: raise Undecided("divides")
        return s._n(s.pw.scale_down_val(s.frame.val(o)).floor())
    def __mod__(s,o):
        if type(o) is not int: raise Undecided("divides")
        return s._n(s.pw.mod_val(s.frame.val(o)))

class Affine(Numbers):
    def __init__(self, frame, sizes): super().__init__(sizes); self.frame=frame
    def truth(self, c): return (self.frame.all if c else self.frame.none) if isinstance(c,bool) else c
    def less(self,a,b):
        if type(a) is int and type(b) is int: return a<b
        return self.frame.lift(a).lt_set(self.frame.lift(b))
    def equal(self,a,b):
        if type(a) is int and type(b) is int: return a==b
        return self.frame.lift(a).eq_set(self.frame.lift(b))
    def both(self,a,b): return self.truth(a).intersect(self.truth(b))
    def either(self,a,b): return self.truth(a).union(self.truth(b))
    def opposite(self,a): return (not a) if isinstance(a,bool) else a.complement()
    def select(self,c,a,b):
        if isinstance(c,bool): return a if c else b
        return Quasi(isl.PwAff.cond(c.indicator_function(), self.frame.lift(a), self.frame.lift(b)), self.frame)
    def minimum(self,a,b):
        if type(a) is int and type(b) is int: return min(a,b)
        return Quasi(self.frame.lift(a).min(self.frame.lift(b)), self.frame)
    def maximum(self,a,b):
        if type(a) is int and type(b) is int: return max(a,b)
        return Quasi(self.frame.lift(a).max(self.frame.lift(b)), self.frame)
    def xor(self,a,b):
        if type(a) is int and type(b) is int: return a^b
        raise Undecided("xor")
