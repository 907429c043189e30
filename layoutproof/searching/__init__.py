"""Search: the best tilings under a target's constraints, each proved legal, with a certificate that none is better.

Without a file: `layoutproof search matmul M N K --dtype bf16 --target v5e`, and likewise batched_matmul B M N K,
quantised_matmul M N K, grouped_matmul M N K E, flash_attention B H S T D, causal_attention B H S D, layer_norm N D,
softmax N D; or your own function, `layoutproof search pkg.mod:fn --arg "bf16[M,K]" --tune bm=128..2048`.
`layoutproof search --init` writes a commented file to start from.

A search file is YAML: one problem, the hardware (`target`), and what is sought (`tune`). Its keys:
    target       the TPU generation
    kernel       a Pallas call with names where numbers will stand: grid, inputs, outputs, scratch; or
    trace, args  your function, MODULE:FUNCTION, and its arguments: it is traced, never run
    sizes        what the names of sizes stand for; a list of them for one tiling of several shapes
    tune         what each variable may be: a list, or from, to, multiple_of, powers_of, divides; ends may be
                 expressions of sizes, {from: 128, to: M // 2, multiple_of: 128}
    constraints  conditions over sizes, variables and time, bytes, flops, carried, steps, vmem, padding
    flops, cost  the kernel's operations; the objective to minimise (default: time)
    partial      none: blocks may not reach over the edge of an array
    vmem, headroom   the limit, and the part of it that is kept free for registers that spill
    layouts      arrays whose least padded bytes are wanted, with tune also over tiles, T(t,128);
    padding      arrays whose nearest larger shape that wastes nothing is wanted;
    shardings    with mesh and memory: how a mesh should cut arrays; products says what a step computes of them
    program      the function with these arguments, which --compile compiles with the best shardings
`layoutproof schema search` describes all of them, with examples; specs/search has a file of each kind.

In the code `search_model.py` is the manual of every key. Start at `file.py`: a file to its answer.
"""

from __future__ import annotations
