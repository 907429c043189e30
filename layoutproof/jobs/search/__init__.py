"""Search: the best tilings under a target's constraints, each proved legal, with a certificate that none is better."""
