"""The same maps on independent implementations: NumPy's moves, JAX on every device, its interpreters, the TPU compiler.

A prover whose engines all run one `place` is wrong everywhere at once where that `place` is wrong. So each case (a
layout, two of them, a kernel) is also put to sources that share nothing with it, and what they say is compared with
what we say, element by element:

    case      what is compared, frozen, with the text that people paste and where it came from     `case.py`
    source    who is asked: one file of `sources`, whose name is the source's name                 `source.py`
    outcome   Agree; Disagree (what, where, ours, theirs); Skipped (why)                           `source.py`
    table     the sources, each with its version and its counts, and the disagreements             `table.py`

Cases come from spec files, dumps, kernels and texts (`given.py`), or at random from a seed (`random_cases.py`).
`run.py` asks; a case with a disagreement is made smaller as long as the disagreement stays (`smaller.py`).

A source that is not installed is skipped, which decides nothing; a case that a source cannot say anything about is
skipped with the reason. Neither is ever counted as agreement. JAX and compilers run in child processes only.
May import everything below `changes`. Start at `case.py`.
"""
