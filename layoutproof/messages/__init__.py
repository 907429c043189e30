"""What a pasted message means: out-of-memory reports, resharding warnings, errors of Mosaic, a line of HLO, a shape.

`read` takes whatever was pasted. It takes logs' prefixes off, lets each reader find its messages, and returns one
`Explanation` for each: the cause, the arrays with their sizes as this package computes them beside those that XLA
printed, and what would avoid it. Each reader is one file and one function from lines to explanations:

    out_of_memory   XLA:TPU's reports on HBM and VMEM, a kernel's scoped VMEM, a GPU's shared memory
    resharding      the SPMD partitioner's "Involuntary full rematerialization"
    mosaic          what the TPU kernel compiler and the Pallas lowering refuse
    shapes          lines of HLO and MLIR, bare shapes; asked only where nothing else was found

Whatever a reader says of sizes is computed here, never copied from the message; where the two differ, the answer is
refuted. A message whose cause is not known is unknown.
"""
