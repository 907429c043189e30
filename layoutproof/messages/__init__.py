"""What a pasted message means: memory that ran out, errors of shardings, donation and kernels, a line of HLO, a shape.

`read` takes whatever was pasted. It takes logs' prefixes off, lets each file of `readers` find its messages, and
returns one `Explanation` for each: the cause, the arrays with their sizes as this package computes them beside those
that XLA printed, and what would avoid it. Where no reader finds anything, `shapes` reads lines of HLO and MLIR, and
bare shapes.

Whatever a reader says of sizes is computed here, never copied from the message; where the two differ, the answer is
refuted. A message whose cause is not known is unknown.
"""
