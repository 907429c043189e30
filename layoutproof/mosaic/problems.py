"""Why a kernel cannot be compiled by itself."""

from __future__ import annotations

from layoutproof.core.message import Template

CONFIGURATION = Template("mosaic.configuration", "the configuration of the call is not JSON")
NOT_BY_ITSELF = Template("mosaic.not_by_itself", "the call cannot be compiled by itself: {why}")
SEMAPHORE_GIVEN = Template(
    "mosaic.semaphore_given", "the call cannot be compiled by itself: the code around it gives it a semaphore"
)
VECTOR_LAYOUT = Template("mosaic.vector_layout", "no layout of a vector in registers: {found!r} of {vector!r}")
