"""How a server is reached: by its standard input and output, or by HTTP from this machine alone."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from layoutproof.core.errors import LayoutError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

HOST = "127.0.0.1"
"""The loopback, which no other machine reaches."""
PATH = "/mcp"


async def by_stdio(server: Server) -> None:
    """Serves the process that started this one, until it closes standard input, or ends while it waits."""
    import anyio
    from mcp.server.stdio import stdio_server

    try:
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())
    except* (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # nothing reads the answers any more


async def by_http(server: Server, port: int, told: Callable[[str], None]) -> None:
    """Serves programs of this machine, until it is stopped.

    A page of the web that a browser shows can send requests to the loopback, too: a request whose `Origin` or `Host`
    is not this server is refused.

    Args:
        server: The server.
        port: Of TCP; 0 for any that is free.
        told: Is called with the address.

    Raises:
        LayoutError: The port is not free.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        # from here on a request waits, also while the server still starts
        listening.listen()
    except OSError as error:
        listening.close()
        raise LayoutError(f"port {port} of {HOST} cannot be had: {error.strerror}") from None
    port = listening.getsockname()[1]
    own = [f"{name}:{port}" for name in (HOST, "localhost")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=own, allowed_origins=[f"http://{name}" for name in own]
    )
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=HOST)
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none"))
    with listening:
        told(f"http://{HOST}:{port}{PATH}")
        await running.serve(sockets=[listening])


def serve(server: Server, port: int | None, told: Callable[[str], None]) -> None:
    """Serves until it is stopped. port: of HTTP, None for standard input and output.  told: hears the address."""
    import anyio

    if port is None:
        anyio.run(by_stdio, server)
    else:
        anyio.run(by_http, server, port, told)
