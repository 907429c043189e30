"""XLA dumps: the cost of every instruction's layout, the copies and bitcasts, and whether these hold.

shapes      the text of a shape -> its arrays with their bytes
memory      which results are buffers of their own, and which are views of others
bitcasts    whether a bitcast keeps every element's bytes
copies      what a copy, transpose or reshape moves
consistency whether two places that name one buffer give it one layout
buffers     XLA's own sizes in a buffer assignment, compared with ours
talks       collectives, and how often they and the copies run
kernels     Mosaic kernels in custom calls, handed to the Pallas checks
audit       all of it, in one pass over a file
report      for people and programs
"""
