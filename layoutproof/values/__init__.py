"""Whether a function computes what its reference computes: both run on kinds of number that decide it.

Floats are random points of a chain of prime fields: sums, products and quotients are exact, exp(a + b) = exp(a) exp(b)
holds, a maximum is a random function of a set, memory that was never written stays undefined whatever multiplies it.
Two functions that agree there are equal but for chance and for the laws that are not modelled; where they differ, a
walk on float64 shows the element. `layoutproof same` asks.
"""
