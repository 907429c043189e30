"""A repository read by syntax: its Pallas calls, shardings and layouts, and which of them anything judges."""
