"""User code: a function named by text, its arguments as shapes, and its Pallas calls. The one place that imports it."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from layoutproof.compiler.tracing import Tracing, function_named
from layoutproof.core.dimensions import OURS
from layoutproof.core.element_types import dtype_name, element_bits, element_type
from layoutproof.core.errors import InternalError, LayoutError, Undecided, shorten
from layoutproof.core.files import MIB, read
from layoutproof.core.recorded import Recorded
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.table_assumptions import check_tables
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.judge import kernel_target

CPU = "cpu"
MAX_MODULE = 16 * MIB
MOST_VALUES = 100_000
"""That a file may give one function, those in lists counted one by one."""
_SHAPE = re.compile(r"\s*([A-Za-z]\w*)\s*\[([0-9,\s]*)\]\s*")
_NAMED_SHAPE = re.compile(r"\s*([A-Za-z]\w*)\s*\[([A-Za-z0-9_*,\s]*)\]\s*")
_SIZE = re.compile(r"[0-9]{1,18}|([0-9]{1,9}\s*\*\s*)?[A-Za-z_][A-Za-z0-9_]{0,31}")
_OURS = str(Path(__file__).resolve().parents[2]) + os.sep


def calls_of(
    place: str,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    target: str | None = None,
    assume: Sequence[str] = (),
    rule: Tracing | None = None,
) -> tuple[Kernel | Unmodelled, ...]:
    """Every Pallas call that a function of the user makes, traced with shapes only.

    place: `package.module:function` or `file.py:function`.  args: as of `arguments`.  kwargs: values.
    target: the hardware it is traced for.  assume: assumptions on tables of scalar prefetch.  rule: of the file that
    names it, as `tracing.permit` gave it; None where a person did.
    Raises LayoutError for a place that is not there, arguments that do not fit, and whatever the user's code raises;
    Undecided for what the rule does not allow.
    """
    chip = "" if target is None else kernel_target(target).name
    values = arguments(args)
    named = dict(kwargs or {})
    if rule is not None:
        check_stated([*values, *named.values()], place)
    with named_function(place, rule) as function:
        _check_arity(function, place, values, named)
        found = _traced(function, values, named, chip, assume)
    check_tables(found, assume)
    return found


@contextlib.contextmanager
def named_function(place: str, rule: Tracing | None = None, text: str | None = None) -> Iterator[Callable[..., Any]]:
    """The function of a place, and its rule, as `calls_of` takes them. Within it user code runs: its output is no
    result of ours, and its exceptions are reported with their line.

    text: stands in for what the function's file holds; None for the file as it is.
    """
    where, name = parts_of_place(place)
    with contextlib.redirect_stdout(sys.stderr), _paths(where), _users_fault(place):
        module = _module(where) if text is None else _edited(where, text)
        yield _function(module, where, name, rule)


def parts_of_place(place: str) -> tuple[str, str]:
    """The module or file of a place, and the name in it.

    Raises LayoutError where it is written otherwise.
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise LayoutError(problems.FUNCTION_FORM(shorten(place, 80)))
    return where, name


def file_of(place: str) -> Path:
    """The file that defines the module of a place; nothing of it runs, but the packages that it is in.

    Raises LayoutError where there is none.
    """
    where, _ = parts_of_place(place)
    if where.endswith(".py"):
        return Path(where)
    with contextlib.redirect_stdout(sys.stderr), _paths(where), _users_fault(place):
        _must_exist(where)
        spec = importlib.util.find_spec(where)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise LayoutError(problems.NO_SOURCE(shorten(where, 80)))
    return Path(spec.origin)


def _edited(where: str, text: str) -> ModuleType:
    """A module made of another text than its file's; who imports it by its name still gets that of the file."""
    path = Path(where) if where.endswith(".py") else file_of(f"{where}:_")
    name = path.stem if where.endswith(".py") else where
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
        code = compile(text, str(path), "exec", dont_inherit=True)
    exec(code, vars(module))
    return module


def calls_in(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    *,
    target: str | None = None,
    assume: Sequence[str] = (),
) -> tuple[Kernel | Unmodelled, ...]:
    """Every Pallas call that a function makes; target and assume as of `calls_of`, errors as of `trace.kernels_of`."""
    found = _traced(function, args, kwargs, "" if target is None else kernel_target(target).name, assume)
    check_tables(found, assume)
    return found


def _traced(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    chip: str,
    assume: Sequence[str],
) -> tuple[Kernel | Unmodelled, ...]:
    from layoutproof.pallas.from_jax.trace import kernels_of

    return tuple(kernels_of(function, tuple(args), kwargs, assume=tuple(assume), **device(chip)))


def device(chip: str) -> dict[str, str]:
    """The options that make tracing believe in a target; a GPU is no device that tracing could pretend to be."""
    return {"target": chip} if chip in CHIPS or chip == CPU else {}


def arguments(values: Sequence[object]) -> list[Any]:
    """Reads arguments that are texts as of `argument`; any other value stands for itself.

    A dimension may be a name, f32[M,128] or f32[8*M,128]: one name is one size in all of them, and any.
    """
    scope = None
    if any(isinstance(value, str) and _has_names(value) for value in values):
        from layoutproof.pallas.from_jax.adapter import need_jax

        scope = need_jax().export.SymbolicScope()
    return [argument(value, scope) if isinstance(value, str) else value for value in values]


def _has_names(text: str) -> bool:
    return _SHAPE.fullmatch(text) is None and _NAMED_SHAPE.fullmatch(text) is not None


def argument(text: str, scope: Any = None) -> Any:
    """Reads one argument's text: an array to trace with, or a Python literal that is passed as it is.

    A shape such as bf16[8,128], its type as XLA, NumPy or JAX writes it (s32, int32, i32), becomes a
    `jax.ShapeDtypeStruct`; that needs jax. scope: a `jax.export.SymbolicScope` for dimensions that are names; None
    where there are none.

    >>> argument("(128, 256)")
    (128, 256)
    """
    found = _SHAPE.fullmatch(text) or _NAMED_SHAPE.fullmatch(text)
    if found is None:
        return _literal(text, "an argument is a shape such as bf16[4096,512] or a Python literal")
    # as NumPy and XLA write it, and as a jaxpr is printed
    kind = element_type(re.sub("^i(?=[0-9])", "int", found[1]))
    element_bits(kind)
    sizes = [part.strip() for part in found[2].split(",")] if found[2].strip() else []
    if not all(map(_SIZE.fullmatch, sizes)):
        raise LayoutError("an array's dimensions are whole numbers separated by commas", text=text[:200])
    named = not all(part.isdigit() for part in sizes)
    if named and scope is None:
        raise LayoutError("here an array's dimensions are whole numbers, and no names", text=text[:200])
    ours = next((name for part in sizes if OURS.fullmatch(name := part.rpartition("*")[2].strip())), "")
    if ours:
        raise LayoutError(
            f"a size has a name such as M or rows: {ours} is what a number of ours is called", text=text[:200]
        )
    from layoutproof.pallas.from_jax.adapter import need_jax

    jax = need_jax()
    dtype = dtype_name(kind)
    try:
        if named:
            from jax import export

            dims = export.symbolic_shape(", ".join(sizes), scope=scope)
        else:
            dims = tuple(map(int, sizes))
        return jax.ShapeDtypeStruct(dims, getattr(jax.numpy, dtype, dtype))
    except ValueError as error:
        why = shorten(" ".join(str(error).split()), 160)
        raise LayoutError(problems.SIZE_NAME(why), text=text[:200]) from None
    except TypeError:
        raise LayoutError(problems.ARRAY_KIND(jax.__version__, kind), text=text[:200]) from None


def _literal(text: str, rule: str) -> object:
    """A Python literal. LayoutError says `rule`."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise LayoutError(problems.ARGUMENT(rule, shorten(text, 60))) from None


@contextlib.contextmanager
def _paths(where: str) -> Iterator[None]:
    """Modules are found as `python -m` finds them: from the current folder first; beside a file, as `python file`."""
    try:
        folder = str(Path(where).resolve().parent) if where.endswith(".py") else os.getcwd()
    except (OSError, ValueError, RuntimeError) as error:
        raise LayoutError(problems.NO_FILE(shorten(ascii(where), 80), shorten(str(error), 120))) from None
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _module(where: str) -> ModuleType:
    if not where.endswith(".py"):
        # a file's name with its ending reads as a module of a package, which may be there and is not what was meant
        is_file = "." in where and os.path.isfile(where)
        if is_file or not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", where):
            raise LayoutError(problems.NO_MODULE_NAME(shorten(where, 80)))
        _must_exist(where)
        return importlib.import_module(where)
    path = Path(where)
    data = read(path, MAX_MODULE)  # the import would wait for a pipe, and read whatever size
    if (null := data.find(b"\0")) >= 0:
        # Python says so of no file and no line
        raise LayoutError(problems.NULL_BYTE(), file=where, line=data.count(b"\n", 0, null) + 1)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LayoutError(problems.NOT_IMPORTED(where))
    module = importlib.util.module_from_spec(spec)
    # dataclasses and pickles of the module look it up by name; a module that is there already keeps its place
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        raise
    return module


def _must_exist(name: str) -> None:
    """LayoutError where there is no such module; a module that is there and fails is the user's own error."""
    parts = name.split(".")
    for k in range(1, len(parts) + 1):
        part = ".".join(parts[:k])
        try:
            found = part in sys.modules or importlib.util.find_spec(part) is not None
        except ValueError:
            found = True  # a module made by hand has no specification
        except ModuleNotFoundError as error:
            if error.name != part:
                raise
            found = False  # its parent is no package
        if not found:
            whose = f", which {shorten(name, 80)} is in" if part != name else ""
            raise LayoutError(problems.NO_MODULE(shorten(part, 80), whose, os.getcwd()))


def _function(module: ModuleType, where: str, name: str, rule: Tracing | None = None) -> Callable[..., Any]:
    found: Any = function_named(module, where, name, rule)
    if not callable(found):
        raise LayoutError(problems.NOT_CALLABLE(where, name, shorten(repr(found), 60)))
    return found  # type: ignore[no-any-return]


def check_stated(values: object, place: str) -> None:
    """Raises LayoutError where a file gives a function something else than shapes, numbers, texts, and lists of them.

    values: as `argument` gives them.
    """
    shape: Any = getattr(sys.modules.get("jax"), "ShapeDtypeStruct", ())
    plain = (type(None), bool, int, float, str, Recorded)
    todo: list[object] = [values]
    seen = 0
    while todo and (seen := seen + 1) <= MOST_VALUES:
        value = todo.pop()
        if isinstance(value, Mapping):
            todo += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            todo += value
        elif type(value) not in plain and not isinstance(value, shape):
            said = "shapes, numbers, texts, and lists, tuples and dicts of them"
            raise LayoutError(problems.INPUT_KIND(place, said, type(value).__name__))
    if todo:
        raise LayoutError(problems.INPUT_SIZE(place, MOST_VALUES))


def _check_arity(
    function: Callable[..., object], place: str, args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some callables have none; calling it will tell
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        shown = str(signature).rpartition(")")[0].removeprefix("(")
        given = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
        given += f" and {', '.join(kwargs)}" if kwargs else ""
        raise LayoutError(problems.CALLED_WITH(place, shorten(shown, 160), given, error)) from None


@contextlib.contextmanager
def _users_fault(place: str) -> Iterator[None]:
    """Turns exceptions of the user's code into our error with the user's line; our own errors pass unchanged."""
    try:
        yield
    except (LayoutError, Undecided, InternalError):
        raise
    except (Exception, SystemExit) as error:
        file, line = _spot(error)
        if file.startswith(_OURS):
            raise
        text = str(error).strip()
        words = f"{type(error).__name__}: {shorten(text, 400)}" if text else type(error).__name__
        raise LayoutError(problems.RAISED_WHILE(words, place), file=file, line=line) from error


def _spot(error: BaseException) -> tuple[str, int]:
    """File and line of the deepest frame that is the user's: not ours, not Python's, not JAX's unless nothing else."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 1
    frames = list(_frames(error.__traceback__))
    jax = sys.modules.get("jax")
    inside = (_OURS, *([str(Path(str(jax.__file__)).parent) + os.sep] if jax is not None else []), "<frozen")
    inside += (os.path.dirname(contextlib.__file__) + os.sep + "contextlib.py",)
    theirs = [frame for frame in frames if not frame[0].startswith(inside)]
    return (theirs or frames)[-1]


def _frames(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
