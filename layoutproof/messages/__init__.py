"""What a pasted message means: memory that ran out, errors of shardings, donation and kernels, a line of HLO, a shape.

`read` takes whatever was pasted. It takes logs' prefixes off, lets each reader find its messages, and returns one
`Explanation` for each: the cause, the arrays with their sizes as this package computes them beside those that XLA
printed, and what would avoid it. Each reader is one file and one function from lines to explanations:

    out_of_memory      XLA:TPU's reports on HBM, VMEM and SMEM, a kernel's scoped VMEM, a GPU's shared memory
    buffer_assignment  XLA:GPU's report of a program's buffers
    allocator          a request for memory that failed while a program ran
    resharding         the SPMD partitioner's "Involuntary full rematerialization"
    shardings          dimensions that a sharding does not divide, ranks, mesh axes, JAX's sharding types
    calls              devices, shardings, argument numbers and types that a jitted function does not take
    donation           donated arrays that were not used, arrays that are used after they were donated
    references         stores of a kernel's body that Pallas refuses, kernels on a backend that runs none
    mosaic             what the TPU kernel compiler and the Pallas lowering refuse
    compiler_checks    checks of the compiler's own that failed, constants that take long
    shapes             lines of HLO and MLIR, bare shapes; asked only where nothing else was found

Whatever a reader says of sizes is computed here, never copied from the message; where the two differ, the answer is
refuted. A message whose cause is not known is unknown.
"""
