"""What is said around kernels and programs: of versions that do not fit, of Pallas for GPUs, of what traces.

Sources: public threads, each a row of `tests/cases/fresh_messages.jsonl`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained
from layoutproof.messages.pasted import PastedLine

_SAME = "install one release of all: pip install -U jax jaxlib, and the plugin or libtpu that jax[..] of it asks for"


def _triton_only(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} is an operation of Pallas for Triton, and this kernel is lowered for a TPU",
        (f"{match[2]} in its place; indices that are arrays become it: index with slices and pl.ds",),
    )


def _prefetch(match: re.Match[str], block: str) -> Told:
    return Told(
        "a kernel with scalar prefetch operands is written for a TPU, and is lowered for a GPU by Triton",
        ("run it on a TPU, or in pltpu.InterpretParams(); on a GPU give the table as an ordinary input",),
    )


def _warpgroup(match: re.Match[str], block: str) -> Told:
    return Told(
        "Mosaic GPU copies with all 128 threads of a warpgroup, and the bytes of this block are no multiple of 128",
        ("a block whose bytes are a multiple of 128, or the Triton backend of pallas_call",),
    )


def _no_layouts(match: re.Match[str], block: str) -> Told:
    return Told(
        "Mosaic GPU finds no layouts of registers that fit all operations of the kernel: what one gives, the next does "
        "not take",
        (
            "look at reductions and broadcasts of arrays of three dimensions and more: loop over the leading one",
            "or say one layout by hand: plgpu.layout_cast(x, ..)",
        ),
    )


def _too_new(match: re.Match[str], block: str) -> Told:
    return Told(f"the kernel is written in version {match[1]} of Mosaic's form, and this libtpu is older", (_SAME,))


def _vhlo(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the program has {match[1]}, a form of an operation that the installed compiler does not know: JAX, or what "
        "exported it, is of another version than jaxlib",
        (_SAME, "export again with the older JAX, or run with the newer jaxlib"),
    )


def _dialects(match: re.Match[str], block: str) -> Told:
    return Told(
        "two copies of MLIR are loaded in one process: of jaxlib, and of a package of its own (triton)", (_SAME,)
    )


def _proto(match: re.Match[str], block: str) -> Told:
    return Told("the Python of Pallas and the library in jaxlib are of two versions", (_SAME,))


def _flag(match: re.Match[str], block: str) -> Told:
    return Told(
        f"XLA_FLAGS has {match[1]}, which this version does not know: its name changed, or it is for another backend",
        ("leave it out; flags of libtpu go into LIBTPU_INIT_ARGS, or compiler_options= of jit",),
    )


def _wide(match: re.Match[str], block: str) -> Told:
    return Told(
        f"an {match[2]} of {match[1]} is asked of a TPU, which has no such type; the compiler writes most operations "
        "anew with narrower ones, and not this",
        ("give it in narrower parts: real and imaginary part, or 32 bits",),
    )


def _unemitted(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the compiler has no code for {match[1]} in this program: a bug of the compiler, not of the program",
        ("write that line with another collective, or take another jaxlib",),
    )


def _unhandled(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the compiler computes a constant ahead of time and has no code for the type {match[1]} there: its own bug",
        ("compute in int32 or float32 and convert the result, or take another jaxlib",),
    )


def _no_backend(match: re.Match[str], block: str) -> Told:
    file = re.search(r"Failed to open (\S{1,300}?): ", block)
    why = f"{file[1]} is not there" if file else match[2].strip()[:160]
    install = ("pip install -U 'jax[tpu]' (or [cuda13]) brings what it loads",) if file else ()
    again = "start a new process: what was half started stays"
    instead = (again if match[1] == "cpu" else "JAX_PLATFORMS=cpu runs without it",)
    return Told(f"JAX cannot start the backend {match[1]}: {why}", (*install, *instead))


def _early(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the program needs {match[1]}, and the device has {match[2]}: it was not compiled at all",
        ("cut the largest array over devices, or make it smaller; layoutproof compile says which it is",),
    )


def _given_a_tracer(match: re.Match[str], block: str) -> Told:
    return Told(
        "a value of a function that is being traced is given to something that needs an array that is there",
        ("call it outside of jit; inside, jax.lax.with_sharding_constraint says where an array lies",),
    )


def _carry(match: re.Match[str], block: str) -> Told:
    return Told(
        "the body of scan returns a carry of another structure than it was given",
        ("return the same containers with the same keys, each value of the same shape and type",),
    )


def _relayout_width(match: re.Match[str], block: str) -> Told:
    return Told(
        "a vector is to change its layout and its width in bits in one step, as booleans do that meet wider elements",
        ("keep it as int32 inside of the kernel and compare last: x != 0 where it is used",),
    )


def _one_row(match: re.Match[str], block: str) -> Told:
    return Told(
        "narrow elements lie in one row of lanes and are asked for in rows of 8: an array of one dimension of fewer "
        "than 32 bits",
        ("give it as a 2-D array, (rows, 128) with rows a multiple of the tile's, or as int32",),
    )


def _row_shift(match: re.Match[str], block: str) -> Told:
    return Told(
        "a value of several rows would have to be moved by some rows within its registers, which is not lowered",
        ("load at a row that is a multiple of 8 and choose the rows by a mask, or transpose it outside",),
    )


def _product_layout(match: re.Match[str], block: str) -> Told:
    return Told(
        "a block of a product is too small for the matrix unit, or not in whole registers",
        ("blocks of at least 128 in the contracted dimension and multiples of (8, 128) else",),
    )


def _plain_scan(match: re.Match[str], block: str) -> Told:
    return Told(
        "jax.lax.scan with xs or stacked results stands in a kernel; its lowering takes carries alone",
        ("jax.lax.fori_loop(0, n, body, carry), which reads x_ref[i] and stores o_ref[i] itself",),
    )


def _open(reason: str) -> Callable[[re.Match[str], str], Told]:
    """What is said of a text that shows no cause: which text it is, and what to paste."""
    return lambda match, block: Told("", reason=reason)


_KINDS: tuple[Kind, ...] = (
    (re.compile(r"`(\w{1,40})` is a Triton-specific primitive\. Please consider using `([\w.]{1,60})`"), _triton_only),
    (re.compile(r"Scalar prefetch not supported in Triton lowering"), _prefetch),
    (re.compile(r"Only copies transferring a number of bytes divisible by the warpgroup size"), _warpgroup),
    (re.compile(r"Failed to infer a possible set of layouts"), _no_layouts),
    (re.compile(r"Unsupported Mosaic version: (\d{1,9})"), _too_new),
    (re.compile(r"failed to legalize operation '(vhlo\.[\w.]{1,80})'"), _vhlo),
    (re.compile(r"Trying to register different dialects for the same namespace"), _dialects),
    (re.compile(r"to_proto\(\): incompatible function arguments"), _proto),
    (re.compile(r"Unknown flags? in XLA_FLAGS: (--\w{1,120})"), _flag),
    (
        re.compile(
            r"rewriting computation to not contain X64 element types.{0,200}?= (\w{1,8})\[.{0,200}? ([\w-]{1,40})\("
        ),
        _wide,
    ),
    (re.compile(r"could not find emitted value for: %?([a-z][\w-]{0,60})"), _unemitted),
    (re.compile(r"unhandled primitive type for input operand: (\w{1,12})"), _unhandled),
    (re.compile(r"Unable to initialize backend '(\w{1,20})': (.{0,400})"), _no_backend),
    (re.compile(r"Aborting compilation early .{0,80}?Requires ([\d.]+\w), has ([\d.]+\w) available"), _early),
    (
        re.compile(r"No canonicalize_dtype handler for type: .{0,80}Tracer|Got type <class '[\w.]{0,80}Tracer'>"),
        _given_a_tracer,
    ),
    (re.compile(r"scan carry output and input must have (?:the )?same type structure"), _carry),
    (re.compile(r"Can't change bitwidth during a relayout"), _relayout_width),
    (re.compile(r"Unsupported layout change for 'vector<\d+xi(?:8|16)>': \"\d+,\{0,0\},\(1,\d+\)"), _one_row),
    (re.compile(r"Row shifts for multi-row values"), _row_shift),
    (re.compile(r"unsupported operand shapes or layouts tpu\.matmul"), _product_layout),
    (re.compile(r"if num_extensive: raise NotImplementedError"), _plain_scan),
    (
        re.compile(r"received signal SIG|Segmentation fault|Fatal Python error: (?:Segmentation|Aborted)"),
        _open(
            "the process ended in native code; give the function to layoutproof compile, which says the known bugs "
            "that the program meets, or paste the compiled program (XLA_FLAGS=--xla_dump_to=DIR)"
        ),
    ),
    (
        re.compile(r"Check failed: !?Is(?:Manual|Replicated|Tiled)\w{0,20}\("),
        _open(
            "a check of the partitioner failed; paste the shardings of the program, or its text from before it was cut "
            "(*before_optimizations.txt of --xla_dump_to)"
        ),
    ),
    (
        re.compile(r"cublasLtMatmul\("),
        _open("the GPU's matrix library refuses a product; paste the line of HLO that calls __cublas$lt$matmul"),
    ),
    (
        re.compile(r"^Operand is null|Expected a tiled memref"),
        _open(
            "an error inside of the lowering of a kernel, without its operation; paste what follows 'The MLIR "
            "operation involved', or give the kernel to layoutproof kernels"
        ),
    ),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """These messages in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("environment", _KINDS, lines)
