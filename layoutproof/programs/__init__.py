"""Programs: the record of a compiled program, and claims about it.

A program is compiled ahead of time, for a TPU that is not there or for the CPU. Its record is plain data: memory,
collectives by mesh axes, relayout copies, kernels with their VMEM, estimated cycles, parameters and results by name.

record      the record as data, and the form in which it is kept
reading     a compiled program's text -> its record
compile     a function, for a target and a compiler -> what came of it
compiling   the process that traces and compiles
shardings   meshes and partition specs as text
spelling    whether JAX takes one spelling of a sharding for another
claims      what may be claimed of a record
candidates  what is worth trying for a program, and whether it helped
advice      a program compiled again with each candidate
trying      the process that compiles one of them
report      a record for people
"""
