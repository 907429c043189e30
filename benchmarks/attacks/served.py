"""What reaches a server that was started with `serve --http`: pages of the web, other addresses, texts that look like
options."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.attacks.room import Untried, command, environment, layoutproof

VERSION = "2025-06-18"


@contextlib.contextmanager
def _server(room: Path) -> Iterator[str]:
    """The address of a server."""
    if importlib.util.find_spec("mcp_types") is None:
        raise Untried("no MCP SDK, so nothing is served")
    with subprocess.Popen(
        command("serve", "--http", "0"), cwd=room, env=environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1]
        finally:
            process.kill()


def _sent(address: str, message: dict[str, Any], **headers: str) -> tuple[int, str]:
    """(status, the answer's text) of one message. A dash in a header's name is written as an underscore."""
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    given = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address, json.dumps({"jsonrpc": "2.0", **message}).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=240) as answer:
            return answer.status, str(answer.headers.get("Mcp-Session-Id") or "") + answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


HELLO: dict[str, Any] = {
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}},
}


def page_of_the_web(room: Path) -> str:
    """A page that a browser shows sends requests to the loopback, by its own origin or by a name that leads there."""
    said = ""
    with _server(room) as address:
        port = address.rpartition(":")[2].partition("/")[0]
        if _sent(address, HELLO)[0] != 200:
            return "the server answers nobody, so nothing is known"
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": f"http://evil.example:{port}"},
            {"Origin": f"http://127.0.0.1.evil.example:{port}"},
            {"Origin": f"http://localhost:{int(port) + 1}"},
            {"Origin": "null"},
            {"Host": f"evil.example:{port}"},
            {"Host": "127.0.0.1"},
            {"Content_Type": "text/plain"},
        ):
            status = _sent(address, HELLO, **headers)[0]
            if status < 400:
                said += f"{headers}: {status}\n"
    return said


def other_address(room: Path) -> str:
    """The server is asked to listen for other machines, or is reached by another address of this one."""
    said = ""
    for where in ("0.0.0.0:0", "[::]:0", "evil.example:80"):
        done = layoutproof(room, "serve", "--http", where)
        if done.returncode != 2 or "127.0.0.1 only" not in done.stderr:
            said += f"{where}: exit {done.returncode}: {done.stderr[-200:]}\n"
    with _server(room) as address:
        port = int(address.rpartition(":")[2].partition("/")[0])
        for other in {"127.0.0.2", *(info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port))}:
            if other == "127.0.0.1":
                continue
            with contextlib.suppress(OSError), socket.create_connection((str(other), port), timeout=2):
                said += f"{other}:{port} is reached\n"
    return said
