"""The known bugs. Versions are those in which somebody saw a bug, or saw it gone; `evidence` says who.

"run here" is a program of the thread that was run on jax and jaxlib 0.10.1, 0.10.2, 0.11.0, 0.11.1, 0.11.2, 0.12.0 and
0.12.0.1 on the CPU, 2026-11-28 (`benchmarks/known_bugs.py`). No TPU and no GPU was at hand.
"""

from __future__ import annotations

from layoutproof.known_bugs.bug import KnownBug

_JAX = "https://github.com/jax-ml/jax/issues/"
_XLA = "https://github.com/openxla/xla/issues/"
_OURS = "BUGS-FOUND.md"
_THREAD = "the thread"
_RUN = "the thread, and run here"
_OWN = "run here, jax 0.10.2 and 0.12.0.1"

BUGS: tuple[KnownBug, ...] = (
    # kernels: libtpu
    KnownBug(
        "jax-39744", "a copy out of HBM gives zeros beside an operand that no program reads", "kernel",
        "unread_beside_copies", "libtpu", "0.0.43", "0.0.45",
        "where the unread operand is computed inside of the same jit, the copy arrives as zeros, without an error",
        "leave the unread operand out of the call", _JAX + "39744",
        "the thread: right on 0.0.41, wrong on 0.0.43, 0.0.44 and 0.0.45", platform="tpu",
    ),
    KnownBug(
        "constant-block-index", "a constant block index behind the last block ends the compiler", "kernel",
        "constant_block_past_the_end", "libtpu", "0.0.42.1", "0.0.42.1",
        "the process of the compiler ends by SIGABRT; later versions refuse the kernel with a message",
        "give the index of a block that there is", f"{_OURS}, libtpu checks a block index only where it is a constant",
        "run here, libtpu 0.0.42.1 and 0.0.52", fixed="0.0.52", platform="tpu",
    ),
    KnownBug(
        "empty-prefetch-operand", "a scalar-prefetch operand without entries is refused", "kernel", "empty_table",
        "libtpu", "0.0.52", "0.0.52", "the kernel is right, and the compiler fails to verify the operand's layout",
        "give the operand one entry that no index map reads",
        f"{_OURS}, libtpu refuses a scalar prefetch operand without entries", "run here, libtpu 0.0.52", platform="tpu",
    ),
    KnownBug(
        "jax-24023", "aliased outputs that the body does not store come back as zeros", "kernel",
        "several_aliases_unstored", "jax", "0.4.34", "0.4.34",
        "with two aliases or more on a TPU, what the input held is lost; the interpreters keep it",
        "store the input's window to the output's in the body", _JAX + "24023",
        "the thread: jax 0.4.34.dev20240924; open since", platform="tpu",
    ),
    # kernels: the interpreters and the kernels of JAX
    KnownBug(
        "interpreter-element-padding", "InterpretParams leaves out the padding before an Element window", "kernel",
        "padded_before_element", "jax", "0.10.2", "0.12.0.1",
        "in that interpreter each window begins as many rows too late; a TPU and interpret=True are right",
        "run it with interpret=True", f"{_OURS}, jax: InterpretParams leaves out the padding before an Element window",
        _OWN,
    ),
    KnownBug(
        "jax-39179", "InterpretParams fetches a single buffer ahead of a store to the table that chooses it", "kernel",
        "single_buffer_by_stored_table", "jax", "0.10.2", "0.12.0.1",
        "in that interpreter the block is the one that the table chose before the store; a TPU sees the store",
        "choose blocks by a table that the body does not store to", _JAX + "39179", f"the thread; {_OWN}",
    ),
    KnownBug(
        "interpreter-negative-index", "JAX's interpreters wrap a scalar index below 0", "kernel", "negative_index",
        "jax", "0.10.2", "0.12.0.1", "they read the last row where a TPU reads what lies before the window",
        "mask the first program, or shift the window", f"{_OURS}, JAX's interpreters wrap negative indices", _OWN,
    ),
    KnownBug(
        "interpreter-block-past-the-end", "interpret=True moves a block behind the array to its last place", "kernel",
        "block_past_the_end", "jax", "0.10.2", "0.12.0.1",
        "it reads and writes the last block again, without an error; a TPU addresses what lies behind the array",
        "run it with InterpretParams, which raises an IndexError",
        f"{_OURS}, JAX's interpret=True moves a block past the end to the last place", _OWN,
    ),
    KnownBug(
        "wheel-matmul-tail", "JAX's own matmul kernel leaves out the rest of the contracted dimension", "kernel",
        "wheel_matmul_tail", "jax", "0.10.2", "0.12.0.1", "the products behind the last whole block are not added up",
        "give a block_k that divides K, or pad K with zeros",
        f"{_OURS}, jax: pallas.ops.tpu.matmul leaves out the last part of K", _OWN,
    ),
    KnownBug(
        "wheel-paged-attention-empty", "paged_attention(.., inline_seq_dim=False) stores nothing for a length of 0",
        "kernel", "wheel_paged_attention", "jax", "0.10.2", "0.12.0.1",
        "the result of a sequence of length 0 is what lay there before, or that of another sequence",
        "leave inline_seq_dim at True, or mask the results of empty sequences",
        f"{_OURS}, jax: paged_attention(.., inline_seq_dim=False) with a sequence of length 0", _OWN,
    ),
    KnownBug(
        "cpu-nan-times-mask", "XLA on the CPU turns a product with a mask into a select", "kernel",
        "multiplied_by_mask", "jaxlib", "0.10.2", "0.12.0.1",
        "NaN times 0 is 0 in the interpreters and NaN on a TPU: padding that is masked by a product looks right there",
        "mask with jnp.where", f"{_OURS}, XLA on CPU turns NaN * mask into a select", _OWN, severity="info",
    ),
    # compiled programs: XLA's partitioner
    KnownBug(
        "xla-49118", "a partitioned dynamic_update_slice drops an update whose start is out of range", "program",
        "update_owned_by_raw_start", "jaxlib", "0.10.1", "0.12.0.1",
        "where the start is past the end, the unpartitioned program clamps it and this one stores nothing",
        "clamp the start: jnp.clip(start, 0, extent - size)", _XLA + "49118", _RUN, severity="info",
    ),
    KnownBug(
        "xla-49122", "a partitioned dynamic_slice clamps its start on each shard", "program", "slice_clamped_by_shard",
        "jaxlib", "0.10.1", "0.11.2", "where the start is past the end, every shard gives the last columns",
        "clamp the start: jnp.clip(start, 0, extent - size)", _XLA + "49122", _RUN, fixed="0.12.0", severity="info",
    ),
    KnownBug(
        "jax-39301", "the partitioner concatenates parts of wrong sizes, and the program is refused", "refusal",
        r"Expected instruction to have shape equal to [\s\S]{0,200}?concatenate\([\s\S]{0,400}?spmd-partitioning",
        "jaxlib", "0.10.2", "0.12.0.1", "two concatenations of parts of one array with one element on each device",
        "write the roll as lax.ppermute inside of shard_map, or hold two elements on each device", _JAX + "39301", _RUN,
    ),
    # compiled programs: the CPU
    KnownBug(
        "xla-49176", "an update in place reads what it has just written", "program", "shifted_update_in_place",
        "jaxlib", "0.10.1", "0.12.0.1", "each part becomes a copy of the one before it, as in x.at[1:].set(x[:-1])",
        "compile with --xla_disable_hlo_passes=algsimp, or build it with jnp.concatenate", _XLA + "49176", _RUN,
        platform="cpu",
    ),
    KnownBug(
        "jax-39103", "a matrix-vector product under vmap and a reduction are fused wrongly", "program",
        "long_rows_in_ynn_dot", "jaxlib", "0.10.2", "0.10.2", "elements of the result are those of other rows",
        "take another jaxlib, or XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=", _JAX + "39103", _RUN,
        fixed="0.11.0", platform="cpu",
    ),
    KnownBug(
        "jax-39257", "a reduction of eight dimensions ends the process", "program", "eight_dimensions_in_ynn",
        "jaxlib", "0.10.2", "0.11.0", "SIGSEGV or a hang on x86-64",
        "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=, or merge dimensions first", _JAX + "39257", _RUN,
        fixed="0.11.1", platform="cpu",
    ),
    KnownBug(
        "jax-40412", "a reduction of seven dimensions, one of them 1, ends the process", "program",
        "seven_dimensions_in_ynn", "jaxlib", "0.10.2", "0.10.2", "SIGSEGV on x86-64",
        "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=, or squeeze the dimension of 1", _JAX + "40412", _RUN,
        fixed="0.11.0", platform="cpu",
    ),
    KnownBug(
        "jax-40101", "a small update in a loop rewrites the whole array each time", "program", "small_update_in_loop",
        "jaxlib", "0.11.1", "0.11.1", "the time grows with the square of the trip count: 2.3 s for 0.0005 at 50,000",
        "take jaxlib 0.11.2", _JAX + "40101", _RUN, fixed="0.11.2", platform="cpu",
    ),
    KnownBug(
        "jax-37465", "a slice is not fused into the reduction behind it", "program", "sliced_before_ynn_reduction",
        "jaxlib", "0.11.0", "0.11.0", "the slice is written out first; the thread measures twice the time",
        "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=-reduce", _JAX + "37465", _THREAD, platform="cpu",
        severity="info",
    ),
    # compiled programs: TPUs
    KnownBug(
        "xla-49143", "an all-reduce is moved out of a loop that accumulates by scatter", "program",
        "reduced_behind_scatter_loop", "libtpu", "0.0.48", "0.0.48",
        "sums of gradients over microbatches are wrong, as of embeddings that are cut over devices",
        "--xla_disable_hlo_passes=while-loop-all-reduce-code-motion", _XLA + "49143", _THREAD, platform="tpu",
    ),
    KnownBug(
        "jax-39025", "a scatter-add by itself gives zeros for a part of the rows", "program", "scatter_by_itself",
        "libtpu", "0.0.42", "0.0.42.1", "the gradient of x[:, idx, :] outside of jit is wrong",
        "put the gradient under jax.jit", _JAX + "39025",
        "the thread: right with libtpu 0.0.41, wrong with 0.0.42.1", platform="tpu",
    ),
    KnownBug(
        "maxdiffusion-429", "two groups of flags that overlap collectives give NaN together", "program",
        "overlapped_collectives", "jax", "0.10.2", "0.10.2",
        "the thread saw it around a splash attention kernel on v6e; each group alone is right",
        "leave out xla_tpu_overlap_compute_collective_tc, or the async collective fusion",
        "https://github.com/AI-Hypercomputer/maxdiffusion/issues/429", _THREAD, platform="tpu",
    ),
    # compiled programs: GPUs
    KnownBug(
        "xla-46110", "a factor is folded into a product with a bias, and the bias is not scaled", "program",
        "scaled_cublas_with_bias", "jaxlib", "0.10.2", "0.11.0",
        "where the source is alpha * (a @ b + bias), alpha * (a @ b) + bias is computed",
        "XLA_FLAGS=--xla_gpu_autotune_level=3, or scale the bias apart", _XLA + "46110",
        "the thread: jax 0.10.2 and 0.11.0; closed since", platform="gpu", severity="info",
    ),
    KnownBug(
        "jax-39486", "a Triton fusion with several results is compiled wrongly for compute capability 12.0", "program",
        "triton_with_several_results", "jaxlib", "0.10.2", "0.11.0", "on sm_120 results are off by any amount",
        "look with --xla_gpu_verify_triton_fusion_numerics=true", _JAX + "39486", _THREAD, platform="gpu",
        severity="info",
    ),
)  # fmt: skip
"""Every known bug; where it is added, `tests/known_bugs` asks for a text that fires and one that does not."""
