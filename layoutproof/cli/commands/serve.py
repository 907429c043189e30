"""`layoutproof serve`: one warm process for agents and editors, by the Model Context Protocol.

In the list: about: Serve agents and editors from one warm process (MCP).
"""

from __future__ import annotations

import importlib.util
import math
import re

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import json_flag, print_json, say
from layoutproof.cli.tools import KEPT, Tool, all_declared
from layoutproof.core.document import Document, envelope
from layoutproof.core.errors import LayoutError, Unsupported, shorten

WORKER = "layoutproof.cli.answering"
"""The program of a worker."""
_PORT = re.compile(r"(?:(?P<host>.*):)?(?P<port>[0-9]{1,5})")
_LOOPBACK = ("127.0.0.1", "localhost")


class ServeDocument(Document):
    """The tools, as a server would list them; with `--json` nothing is served."""

    tools: list[Tool]


@click.command()
@click.option("--http", metavar="PORT", help="Serve by HTTP on 127.0.0.1 instead of standard input; 0: any free port.")
@click.option("--seconds", type=click.FloatRange(min=1), default=600, show_default=True, help="For one call.")
@click.option("--memory", metavar="SIZE", default="32GiB", show_default=True, help="Address space of one worker.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Calls at once; others wait.")
@json_flag
def command(http: str | None, seconds: float, memory: str, workers: int, as_json: bool) -> int:
    """Serve agents and editors, by the Model Context Protocol (MCP), until standard input ends.

    The tools are commands: kernels, same, ask, compile, why, search, explain. Their arguments are the options of the
    command, and their answers the objects of --json, which the same with --json lists with their schemas. Code that a
    call names is imported in workers: one stays warm for each set of modules, and is replaced when a file that it
    opened changes, when it ends or fails, and when a call takes too long or too much memory. It needs the extra
    [serve].

    By HTTP the server is reached from this machine only, by all of its users: whoever reaches it runs code as you.

    \b
    Example:
      layoutproof serve
    """
    from layoutproof.core.amounts import amount

    port, bound = None if http is None else _port(http), amount(memory)
    if as_json:
        tools: ServeDocument = {**envelope(0), "tools": all_declared()}
        return print_json(tools)
    if any(importlib.util.find_spec(name) is None for name in ("mcp", "mcp_types")):
        raise Unsupported(problems.SERVE_WITHOUT_MCP())
    from layoutproof.compiler import cache
    from layoutproof.compiler.child import Child
    from layoutproof.serving.pool import Pool
    from layoutproof.serving.server import Serving
    from layoutproof.serving.transports import serve

    pool = Pool(Child("the worker", WORKER, seconds=math.inf, memory=bound), workers, seconds)
    pool.begin()
    try:
        serve(
            Serving(pool, workers, lambda: cache.get(KEPT)).server(),
            port,
            lambda address: say(f"serving at {address}", err=True),
        )
    finally:
        pool.close()
    return 0


def _port(text: str) -> int:
    """The port of `PORT` or `HOST:PORT`. LayoutError for another host than the loopback."""
    found = _PORT.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise LayoutError(problems.PORT_FORM(shorten(text, 60)))
    if found["host"] is not None and found["host"] not in _LOOPBACK:
        raise LayoutError(problems.HOST_NOT_LOOPBACK(shorten(found["host"], 60)))
    return int(found["port"])
