"""Programs as data: the output of a front end (JAX, Mosaic, a record), and the input of all interpreters.

Start in `program`: a `Program` has inputs, equations in order and results. A further front end is one more function
that makes one.
"""
