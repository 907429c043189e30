"""What may be wrong with a text that is pasted."""

from __future__ import annotations

from layoutproof.core.message import Template

NOTHING_KNOWN = Template(
    "messages.nothing_known",
    "nothing in the text is known: no out-of-memory report, resharding warning, error of shardings, shapes, "
    "donation, calls or kernels, line of HLO or MLIR, or shape{absent}",
)
NOTHING_PASTED = Template("messages.nothing_pasted", "nothing is pasted: the text is empty")
NO_SHAPE = Template("messages.no_shape", "the text names no shape")
RESHAPE_BETWEEN = Template(
    "messages.reshape_between", "one sharding is of {one} dimensions and one of {other}: a reshape is between"
)
TOO_LONG = Template(
    "messages.too_long", "{characters} characters are pasted; at most {most} are read: cut it to the message"
)
