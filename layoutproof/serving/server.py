"""The MCP server: the tools, their answers, progress, cancellation, and pictures as resources.

The Model Context Protocol lets agents and editors find tools and call them; its Python SDK reads and writes it. This
process imports no user code and no engine: it hands each call to a worker (`pool`), and what becomes of a worker is the
answer to that call alone. An answer is the object that the command prints with `--json`, and a text that says the same.

Source: https://modelcontextprotocol.io/specification, versions 2025-06-18 to 2026-07-28; SDK mcp 2.3.0.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import layoutproof
from layoutproof.compiler.child import NoLongerAwaited, Reply
from layoutproof.core.document import Failure, envelope, error_entry
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.serving.pool import Pool, Ran

if TYPE_CHECKING:
    import anyio
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

SCHEME = "layoutproof://pictures/"
"""Begins the addresses of pictures."""
MOST_PICTURES = 100
"""That are kept, the last ones."""
BEAT = 1.0
"""Seconds between two messages of progress."""
_UNKNOWN = 3
_BAD_INPUT = 2
_CODE = re.compile(r"(?P<module>[^:]+\.py|[^\W\d][\w.]*):[^\W\d][\w.]*")
"""How a function is named: `file.py:function`, `module:function`."""
_FILE = re.compile(r"\S.*\.(ya?ml|toml)")
"""How a file is named that may name functions."""
INSTRUCTIONS = """\
Proves what tensor layouts and Pallas kernels do. The arguments of a tool are the options of the command with its name;
its answer is what the command prints with --json. exit_code: 0 proved, 1 refuted, 2 bad input, 3 unknown, which is
never green. A refutation is replayed on plain integers before it is shown; fix says what to write instead. The
functions that you name are imported and traced on this machine. Files are read anew when they change."""


class Serving:
    """What one server keeps: its workers, its list of tools, and the last pictures."""

    def __init__(self, pool: Pool, many: int, kept: Callable[[], object]) -> None:
        """many: calls that are worked on at once; others wait.  kept: the tools where they are known already."""
        import anyio

        self._pool = pool
        self._known = kept
        self._room = anyio.CapacityLimiter(many)
        # the list of tools does not wait behind long work
        self._aside = anyio.CapacityLimiter(1)
        self._tools: list[types.Tool] = []
        self._pictures: dict[str, str] = {}
        self._drawn = 0

    def server(self) -> Server:
        """The server, for any transport."""
        from mcp.server.lowlevel import Server

        return Server(
            "layoutproof",
            version=layoutproof.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    async def _list_tools(self, context: object, params: object) -> types.ListToolsResult:
        import anyio
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        if not self._tools:
            found = await anyio.to_thread.run_sync(self._known, limiter=self._aside)
            if found is None:
                reply = await self._asked({"do": "tools"}, (), threading.Event(), _Said(), self._aside)
                if reply.value is None:
                    raise MCPError(types.INTERNAL_ERROR, reply.problem)
                found = reply.value
            self._tools = [_tool(each) for each in cast(list[dict[str, object]], found)]
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(
        self, context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        import anyio

        given = params.arguments or {}
        request = {"do": "run", "tool": params.name, "arguments": given}
        stop, said = threading.Event(), _Said()
        async with anyio.create_task_group() as beside:
            beside.start_soon(_beat, context, params.name, said)
            try:
                reply = await self._asked(request, code_in(given), stop, said, self._room)
            except LayoutError as error:
                reply = Reply(None, str(error), "raised")
            finally:
                # who cancels the call waits no longer: its worker ends
                stop.set()
                beside.cancel_scope.cancel()
        if reply.value is None:
            return _failed(reply)
        return self._result(cast(Ran, reply.value))

    async def _asked(
        self, request: object, modules: tuple[str, ...], stop: threading.Event, said: _Said, room: anyio.CapacityLimiter
    ) -> Reply[object]:
        import anyio

        ask = partial(self._pool.ask, request, modules, said.hear, stop.is_set)

        def waited() -> Reply[object]:
            try:
                return ask()
            except NoLongerAwaited:
                return Reply(None, "cancelled", "ended")

        try:
            found: Reply[object] = await anyio.to_thread.run_sync(waited, abandon_on_cancel=True, limiter=room)
            return found
        finally:
            stop.set()

    def _result(self, value: Ran) -> types.CallToolResult:
        """The answer of a worker as the protocol has it."""
        import mcp_types as types

        document = dict(value["document"])
        content: list[Any] = [types.TextContent(text=value["text"])]
        if value["picture"]:
            address = self._kept(value["picture"])
            # where the command says the file's name
            document["written"] = [address]
            content.append(types.ResourceLink(uri=address, name="picture", mime_type="image/svg+xml"))
        return types.CallToolResult(content=content, structured_content=document, is_error="error" in document)

    def _kept(self, picture: str) -> str:
        self._drawn += 1
        address = f"{SCHEME}{self._drawn}.svg"
        self._pictures[address] = picture
        if len(self._pictures) > MOST_PICTURES:
            del self._pictures[next(iter(self._pictures))]
        return address

    async def _list_resources(self, context: object, params: object) -> types.ListResourcesResult:
        import mcp_types as types

        found = [
            types.Resource(uri=address, name=address.removeprefix(SCHEME), mime_type="image/svg+xml")
            for address in self._pictures
        ]
        return types.ListResourcesResult(resources=found)

    async def _read_resource(
        self, context: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        address = str(params.uri)
        if address not in self._pictures:
            why = f"there is no picture {shorten(address, 100)}; the last {MOST_PICTURES} are kept"
            raise MCPError(types.INVALID_PARAMS, why)
        held = types.TextResourceContents(uri=address, mime_type="image/svg+xml", text=self._pictures[address])
        return types.ReadResourceResult(contents=[held])


class _Said:
    """The last words about what a worker does."""

    def __init__(self) -> None:
        self.words = ""

    def hear(self, words: object) -> None:
        """words: as the command says them to who waits."""
        self.words = shorten(str(words), 300)


async def _beat(context: ServerRequestContext, tool: str, said: _Said) -> None:
    """Tells who asked for it, once a second, that the work goes on, and what is done."""
    import anyio

    begun = time.monotonic()
    while True:
        await anyio.sleep(BEAT)
        passed = time.monotonic() - begun
        await context.session.report_progress(passed, message=f"{said.words or tool}, {passed:.0f} s")


def code_in(arguments: Mapping[str, object]) -> tuple[str, ...]:
    """The modules and files that the arguments of a call name, which a worker will have imported.

    >>> code_in({"place": "ops.py:fast", "reference": "pkg.ops:plain", "arg": ["f32[8]"]})
    ('ops.py', 'pkg.ops')
    """
    texts: list[str] = []
    for value in arguments.values():
        texts += [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    found = {match["module"] for text in texts if (match := _CODE.fullmatch(text))}
    return tuple(sorted(found | {text for text in texts if _FILE.fullmatch(text)}))


def _tool(declared: Mapping[str, object]) -> types.Tool:
    import mcp_types as types

    # a client may take its user's consent for granted where nothing can be changed: code that runs can change anything
    reads = not declared["runs_code"]
    hints = types.ToolAnnotations(title=declared["title"], read_only_hint=reads, open_world_hint=False)
    return types.Tool(
        name=declared["name"],
        description=declared["description"],
        input_schema=declared["arguments"],
        output_schema=declared["answer"],
        annotations=hints,
    )


def _failed(reply: Reply[object]) -> types.CallToolResult:
    """Of a worker that gave no answer: it ended, took too long, or failed."""
    import mcp_types as types

    error = reply.error if isinstance(reply.error, LayoutError) else RuntimeError()
    kind = "input" if isinstance(error, LayoutError) else "unknown"
    code = _BAD_INPUT if kind == "input" else _UNKNOWN
    document: Failure = {**envelope(code), "error": error_entry(error, kind, reply.problem)}
    text = f"exit code {code}: {reply.problem}"
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=dict(document), is_error=True
    )
