"""Sums of products as relations: which operands meet in which output element, for any size of arrays.

A function is read once, its kernels' programs as names, into sums of products (`core.products`); `solvers.isl` finds
for each element the operands that its sum is of, through memory by the order of the programs. Two sides are equal where
these relations are, no operands meet twice, and nothing is undefined. Programs with other operations are not for this
engine.
"""
