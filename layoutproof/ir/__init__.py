"""Programs as data: what a front end (JAX, Mosaic, a record) makes of its own form, and all that interpreters read.

Start in `program`: a `Program` has inputs, equations in order and results. A further front end is one more function
that makes one.
"""
