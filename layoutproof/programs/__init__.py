"""Programs: what a compiler made of one, as a record, and claims about it.

record      what was compiled: memory, collectives, copies, kernels, cycles, parameters and results by name
reading     a compiled program's text -> its record
"""
