"""The changes between two states of layouts, each with its class, its proof and its place.

states     reads two states: files, folders, a git revision, the lock file
compiled_program  what is compared of a compiled program, read from a dump, a record or a lock
entry      what changed of parameters and results, of dumps, locked dumps and records alike
labels     what each instruction of a program computes, whatever it is called
dataflow   where two programs compute something else
causes     what comes from a change, under it; `folding` judges both
matching   which thing of one state is which of the other
classes    the classes of a change of one layout, proved
specs      what changed between two spec files
exchanges  what changed of collectives; `custom_calls` of kernels and other custom calls
compiled_changes  what changed between two compiled programs
program    an HLO dump, read into a compiled program and its instructions
program_changes  what changed between two HLO dumps, instruction by instruction
records    the record of a compiled program, as it is compared
spec_programs  the programs that spec files name, compiled: against the lock, the base, or under two compilers
traced     what changed in the Pallas calls of user code that a spec file names; their bodies by `traced_bodies`
rules      the gate's rules in a pyproject.toml, found and read
policy     which changes are allowed, and who approved which
report     what came of each file, judged by the rules
lock       what a lock file says of specs and, by `lock_programs`, of dumps; its first line is in `lock_head`
compilers  the same programs under two compilers
drift      what is here against a lock file
compare    two states in, one report out

Each imports earlier ones only. Start at `compare.py`.
"""
