"""A child process that asks jaxlib's HLO parser about shapes: a JSON list of texts in, a JSON list of answers out.

An answer is what XLA prints for the text, or null where it refuses or aborts. XLA aborts the whole process on some
texts, so forks do the asking: one that dies answers null for the text it died on, and the next one goes on after it.
"""

from __future__ import annotations

import json
import os
import sys


def printed(text: str) -> str | None:
    from jaxlib import _hlo

    try:
        module = _hlo.hlo_module_from_text(f"HloModule m\nENTRY e {{ ROOT p = {text}\n parameter(0) }}")
    except Exception:
        return None
    (root,) = (line for line in module.to_string().splitlines() if line.strip().startswith("ROOT "))
    return root.strip().removeprefix("ROOT %p = ").removesuffix(" parameter(0)")


def answers(texts: list[str]) -> list[str | None]:
    done: list[str | None] = []
    while len(done) < len(texts):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the stack trace of an abort
            with os.fdopen(write, "w") as out:
                for text in texts[len(done) :]:
                    out.write(json.dumps(printed(text)) + "\n")
                    out.flush()
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as lines:
            done += [json.loads(line) for line in lines]
        _, status = os.waitpid(child, 0)
        if status != 0:
            done.append(None)
    return done


if __name__ == "__main__":
    import jaxlib._hlo  # noqa: F401  loaded once, before the forks

    json.dump(answers(json.load(sys.stdin)), sys.stdout)
