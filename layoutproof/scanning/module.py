"""One Python file by its syntax: its calls that say where data lies, and the names that each of its functions uses.

Nothing is imported. A name stands for what the file's imports and plain assignments make of it: `pl.pallas_call`,
`from jax.experimental.pallas import pallas_call as call`, `run = functools.partial(pl.pallas_call, grid=(8,))`. What is
only known to the running program, `getattr(pl, name)`, is not seen.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.scanning import problems

CALLS = ("pallas_call", "pl.kernel", "core_map")
"""The kinds of sites that run a Pallas kernel."""
KINDS = (*CALLS, "shard_map", "PartitionSpec", "sharding", "sharding constraint", "layout", "BlockSpec", "layout text")
"""Every kind of site, in the order of a report."""

_BY_NAME = {
    "pallas_call": "pallas_call",
    "shard_map": "shard_map",
    "PartitionSpec": "PartitionSpec",
    "NamedSharding": "sharding",
    "with_sharding_constraint": "sharding constraint",
    "with_layout_constraint": "layout",
}
_IN_PALLAS = {"kernel": "pl.kernel", "core_map": "core_map", "BlockSpec": "BlockSpec"}
_IN_LAYOUT = {"Layout": "layout", "Format": "layout", "DeviceLocalLayout": "layout"}
_IN_FLAX = {
    "with_logical_constraint": "sharding constraint",
    "with_partitioning": "sharding",
    "with_logical_partitioning": "sharding",
}
_HARDWARE = (
    ("SparseCore", re.compile(r"\bpallas\.tpu_sc\b|\bmosaic\.sc_\w+")),
    ("GPU", re.compile(r"\bpallas\.(mosaic_gpu|triton|gpu)\b")),
    ("TPU", re.compile(r"\bpallas\.(tpu|mosaic)\b")),
)
_TEXT = re.compile(
    # as XLA prints a layout; as CuTe prints one; as Axe's authors write one
    r"(pred|[a-z]{1,4}\d{1,2}\w{0,12})\[[\w,*<=\s]*\]\{[\d,]*(:[\w(),\s*-]+)?\}"
    r"|\(?[\d(),\s]{1,80}\)?:\([\d(),\s]{1,80}\)"
    r"|S\[[^\[\]]{1,80}:[^\[\]]{1,80}\].{0,80}"
)
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class SourceSite:
    """A call that says where data lies.

    kind: of KINDS.  hardware: "TPU", "GPU" or "SparseCore", "" where the file does not say.  function: the outermost
    function or class that it is in, "" where it is in none.  inside: the whole path, as `outer.inner`.
    """

    kind: str
    line: int
    hardware: str = ""
    function: str = ""
    inside: str = ""


@dataclass(frozen=True, slots=True)
class PythonFile:
    """What one file has.

    names: what each name of the file stands for, with dots.  uses: per outermost function or class, "" for the rest,
    the names that it uses, with dots.  stars: modules whose names are all imported.
    """

    name: str
    sites: tuple[SourceSite, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    stars: tuple[str, ...] = ()


def kind_of(name: str) -> str:
    """The kind of site that a call of this name is, "" for none.

    >>> kind_of("jax.experimental.pallas.pallas_call"), kind_of("self.pallas_call")
    ('pallas_call', '')
    """
    base, _, last = name.rpartition(".")
    if base in ("self", "cls"):
        return ""
    for part, table in (("pallas", _IN_PALLAS), ("layout", _IN_LAYOUT), ("flax", _IN_FLAX)):
        if last in table:
            return table[last] if part in base else ""
    return _BY_NAME.get(last, "") if base or last in _BY_NAME else ""


def parsed(data: bytes, file: str) -> ast.Module:
    """The syntax of a file. LayoutError where it has none: another encoding, no text, a newer Python's.

    Type parameters, `def f[T](x: T)`, `class A[T]:` and `type X = ..` of Python 3.12, are left out where this Python is
    older: no site is in them.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(data, file)
            except SyntaxError:
                older = _TYPED.sub(_untyped, data)
                if older == data:
                    raise
                return ast.parse(older, file)
    except SyntaxError as error:
        raise LayoutError(problems.NOT_PARSED(error.msg, _mentions(data)), file=file, line=error.lineno) from None
    except (ValueError, RecursionError, MemoryError, UnicodeError) as error:
        why = shorten(str(error) or "nested too deep", 120)
        raise LayoutError(problems.NOT_PARSED(why, _mentions(data)), file=file) from None


_TYPED = re.compile(
    rb"(?m)^([ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+)(\[(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*\])"
    rb"|^([ \t]*)type[ \t]+(\w+)(\[(?:[^\[\]]|\[[^\[\]]*\])*\])?(?=[ \t]*=[^=])"
)


def _untyped(found: re.Match[bytes]) -> bytes:
    """Without its type parameters, on as many lines."""
    if found[1] is not None:
        return found[1] + b"\\\n" * found[2].count(b"\n")
    return found[3] + found[4] + b"\\\n" * (found[5] or b"").count(b"\n")


def _mentions(data: bytes) -> str:
    """What cannot be parsed and may have sites says so."""
    counts = {name: len(re.findall(rb"\b%s\b" % name.encode(), data)) for name in ("pallas_call", "shard_map")}
    said = " and ".join(f"{name} {count} times" for name, count in counts.items() if count)
    return f"; it mentions {said}" if said else ""


def module_of(data: bytes, name: str, file: str, also: Mapping[str, str] | None = None) -> PythonFile:
    """What a file has. name: of the module, with dots.  also: names of other modules that stand for a Pallas call or
    something like it, and for what.

    Raises LayoutError where it cannot be parsed.

    >>> text = b"from jax.experimental import pallas as pl\\ndef f(x):\\n  return pl.pallas_call(body)(x)"
    >>> module_of(text, "a", "a.py").sites
    (SourceSite(kind='pallas_call', line=3, hardware='', function='f', inside='f'),)
    """
    tree = parsed(data, file)
    try:
        return _ModuleReader(name, file.endswith("__init__.py"), also or {}).read(tree)
    except RecursionError:
        raise LayoutError(problems.NESTED_PYTHON(), file=file) from None


class _ModuleReader:
    """Goes over one file: first its names, then its sites and uses."""

    def __init__(self, name: str, package: bool, also: Mapping[str, str]) -> None:
        self.name = name
        self.parts = name.split(".") if package else name.split(".")[:-1]
        self.also = also
        self.names: dict[str, str] = {}
        self.stars: list[str] = []
        self.partials: dict[str, ast.Call] = {}
        self.called: set[str] = set()
        self.uses: dict[str, set[str]] = {}
        self.sites: list[SourceSite] = []
        self.whole = ""

    def read(self, tree: ast.Module) -> PythonFile:
        for part in tree.body:
            if isinstance(part, _SCOPES):
                self.names[part.name] = f"{self.name}.{part.name}"
        nodes = list(_walked(tree))
        for node, _, _ in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                self.called.add(node.func.id)
        for node, _, _ in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._assign(node.targets[0].id, node.value)
        self.whole = _only(" ".join(self.names.values()))
        for node, function, inside in nodes:
            self._look(node, function, inside)
        uses = {function: frozenset(names) for function, names in self.uses.items()}
        return PythonFile(self.name, tuple(self.sites), self.names, uses, tuple(self.stars))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self.names[alias.asname or top] = alias.name if alias.asname else top
            return
        base = self.parts[: len(self.parts) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                self.names[alias.asname or alias.name] = f"{source}.{alias.name}"

    def _assign(self, name: str, value: ast.expr) -> None:
        """`run = pl.pallas_call`, one of two, or a partial application of it: the name stands for it."""
        for choice in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
            stands = self._applied(choice) if isinstance(choice, ast.Call) else self._dotted(choice)
            if stands and self._kind(stands):
                self.names[name] = stands
                if isinstance(choice, ast.Call):
                    self.partials[name] = choice

    def _applied(self, call: ast.Call) -> str:
        """The name that `functools.partial(NAME, ..)` applies, "" for any other call."""
        if self._dotted(call.func).rpartition(".")[2] == "partial" and call.args:
            return self._dotted(call.args[0])
        return ""

    def _dotted(self, node: ast.AST) -> str:
        """A name or a chain of attributes, with what its first name stands for; "" for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])

    def _kind(self, name: str) -> str:
        name = self.also.get(name, name)
        # a function of this file that is called so is its own, and what it calls is seen within it
        own = name.startswith(f"{self.name}.") and name.count(".") == self.name.count(".") + 1
        return "" if own else kind_of(name)

    def _look(self, node: ast.AST, function: str, inside: str) -> None:
        if isinstance(node, ast.Name | ast.Attribute):
            if name := self._dotted(node):
                self.uses.setdefault(function, set()).add(name)
        elif isinstance(node, ast.Call):
            self._call(node, function, inside)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if len(node.value) <= _LONGEST_TEXT and _TEXT.fullmatch(node.value.strip()):
                self._site("layout text", node, function, inside)
        elif isinstance(node, _SCOPES):
            for decorator in node.decorator_list:
                if not isinstance(decorator, ast.Call) and (kind := self._kind(self._dotted(decorator))):
                    self._site(kind, decorator, function, inside)

    def _call(self, node: ast.Call, function: str, inside: str) -> None:
        kind = self._kind(self._dotted(node.func))
        if not kind and (applied := self._applied(node)):
            # a partial application that has a name counts where that name is called
            named = {name for name, call in self.partials.items() if call is node}
            kind = "" if named & self.called else self._kind(applied)
        if kind:
            self._site(kind, node, function, inside)

    def _site(self, kind: str, node: ast.expr, function: str, inside: str) -> None:
        hardware = ""
        if kind in CALLS:
            said = " ".join(self._dotted(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute))
            hardware = _first(said) or self.whole
        self.sites.append(SourceSite(kind, node.lineno, hardware, function, inside))


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KEPT = (*_SCOPES, ast.Import, ast.ImportFrom, ast.Assign, ast.Call, ast.Name, ast.Attribute)


def _walked(tree: ast.Module) -> Iterator[tuple[ast.AST, str, str]]:
    """What `_ModuleReader` looks at, in the order of the text: (node, outermost function that it is in, whole path).

    Without recursion, since a sum of a thousand parts is nested as deep; of `a.b.c` the whole and none of its parts.
    """
    todo: list[tuple[Any, str, str]] = [(tree, "", "")]
    while todo:
        node, function, inside = todo.pop()
        if isinstance(node, list):
            todo += [(part, function, inside) for part in reversed(node) if isinstance(part, ast.AST)]
            continue
        if isinstance(node, _SCOPES):
            function, inside = function or node.name, f"{inside}.{node.name}" if inside else node.name
        if isinstance(node, _KEPT) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            yield node, function, inside
        if isinstance(node, ast.Attribute):
            while isinstance(node, ast.Attribute):
                node = node.value
            if isinstance(node, ast.Name):
                continue
            todo.append((node, function, inside))
            continue
        for name in reversed(node._fields):
            part = getattr(node, name, None)
            if isinstance(part, list) or (isinstance(part, ast.AST) and not isinstance(part, _LEAVES)):
                todo.append((part, function, inside))


_LEAVES = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def _first(said: str) -> str:
    return next((name for name, pattern in _HARDWARE if pattern.search(said)), "")


def _only(said: str) -> str:
    """The one hardware that the imports of a file speak of; "" where they speak of none or of several."""
    found = [name for name, pattern in _HARDWARE if pattern.search(said)]
    return found[0] if len(found) == 1 else ""


def names_that_stand_for_calls(modules: Mapping[str, PythonFile]) -> Iterator[tuple[str, str]]:
    """(`pkg.compat.call`, what it stands for) of every module that gives a site's function a name of its own."""
    for module in modules.values():
        for name, stands in module.names.items():
            if stands.rpartition(".")[2] != name and kind_of(stands):
                yield f"{module.name}.{name}", stands
