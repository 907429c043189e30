"""Messages, a file for each kind: `read(lines, target)` gives an `Explanation` for each message that it finds.

    out_of_memory      XLA:TPU's reports on HBM, VMEM and SMEM, a kernel's scoped VMEM, a GPU's shared memory
    buffer_assignment  XLA:GPU's report of a program's buffers
    allocator          a request for memory that failed while a program ran
    resharding         the SPMD partitioner's "Involuntary full rematerialization"
    shardings          dimensions that a sharding does not divide, ranks, mesh axes, JAX's sharding types
    concrete           values that Python needs and tracing does not have
    tracing            shapes in products, broadcasts, reshapes and carries, while JAX traces a function
    collectives        shards that collectives move, values that vary over a mesh
    calls              devices, shardings, argument numbers and types that a jitted function does not take
    donation           donated arrays that were not used, arrays that are used after they were donated
    references         stores of a kernel's body that Pallas refuses, kernels on a backend that runs none
    pallas             constants, grids, index maps, aliases, types and semaphores that Pallas refuses itself
    mosaic_gpu         copies, products and memory of kernels for GPUs, blocks of Triton
    halted             what a TPU says when it stops
    mosaic             what the TPU kernel compiler and the Pallas lowering refuse
    compiler_checks    checks of the compiler's own that failed, constants that take long

A file is found by being here: `layoutproof.messages.read` asks each. What one pattern finds is a row for
`layoutproof.messages.kinds.explained`.
"""
