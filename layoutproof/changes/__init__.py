"""What changed between two states of layouts, each change with its class, its proof and its place.

states     reads two states: files, folders, a git revision, the lock file
matching   which thing of one state is which of the other
classes    the classes of a change of one layout, proved
specs      what changed between two spec files
programs   what changed between two HLO dumps
policy     which changes are allowed, and who approved which
compare    all of it: two states in, one report out
"""
