"""`layoutproof serve` as agents use it: by the SDK's own client, over standard input and over HTTP."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli.documents import json_schema
from layoutproof.cli.main import run
from layoutproof.cli.tools import TOOLS, command_line
from tests.serving.code import ENDLESS, EXITS, FALLS, HUNGRY, KERNELS, SIZES

pytest.importorskip("mcp_types", reason="serving needs the extra [serve]")
pytest.importorskip("jax", reason="tracing a kernel needs the extra [jax]")

from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DOUBLE = {"place": "kernels.py:double", "args": "f32[32,128]", "target": "v5e"}


class Served:
    """A server with a client, and the folder in which it runs."""

    def __init__(self, portal: BlockingPortal, client: Any, folder: Path) -> None:
        self.portal, self.client, self.folder = portal, client, folder
        self.environment = environment(folder)
        self.progress: list[tuple[float, str]] = []

    def write(self, **files: str) -> None:
        """Python files into the folder."""
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, "utf-8")

    async def waiting(self, tool: str, **arguments: object) -> Any:
        """The result of a call."""

        async def hear(passed: float, total: float | None, words: str | None) -> None:
            self.progress.append((passed, words or ""))

        return await self.client.call_tool(tool, arguments, progress_callback=hear)

    def call(self, tool: str, **arguments: object) -> Any:
        """The result of a call."""
        return self.portal.call(lambda: self.waiting(tool, **arguments))

    def ask(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The object of a call's answer."""
        found: dict[str, Any] = self.call(tool, **arguments).structured_content
        return found


def environment(folder: Path) -> dict[str, str]:
    """Of a server: its cache is of the test alone."""
    given = {"PYTHONPATH": str(ROOT), "LAYOUTPROOF_CACHE": str(folder / "kept"), "JAX_PLATFORMS": "cpu"}
    # as it is after an installation: what is compiled stays so, and a worker starts in half of the time
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    return {**os.environ, **given, **compiled}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers run."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    """A server over standard input and output."""
    how = StdioServerParameters(
        command=sys.executable, args=["-m", "layoutproof", "serve"], env=environment(folder), cwd=str(folder)
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(stdio_client(how))) as client:
        made = Served(portal, client, folder)
        made.write(kernels=KERNELS, served_rows=SIZES)
        yield made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a server over HTTP, whose calls have 4 seconds."""
    words = [sys.executable, "-m", "layoutproof", "serve", "--http", "0", "--seconds", "4", "--workers", "1"]
    with subprocess.Popen(words, env=environment(folder), cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving at http://127.0.0.1:")
        yield line.split()[-1]
        process.kill()


@pytest.fixture(scope="module")
def by_http(folder: Path, address: str) -> Iterator[Served]:
    """The same server with a client."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(address)) as client:
        yield Served(portal, client, folder)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command line prints."""
    capsys.readouterr()
    run(words)
    return json.loads(capsys.readouterr().out)


def test_the_tools_are_the_commands_with_their_schemas(served: Served) -> None:
    """Each is a schema by itself, of an object; the client holds every answer of a test against the second."""
    tools = served.portal.call(served.client.list_tools).tools
    assert tuple(tool.name for tool in tools) == TOOLS
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        if tool.name in ("ask", "kernels"):
            assert tool.output_schema == {"type": "object", **json_schema(tool.name)}
        assert tool.input_schema["type"] == "object"
        assert tool.description
        assert tool.annotations.read_only_hint == (tool.name in ("ask", "why", "explain"))
        assert "json" not in tool.input_schema["properties"]


ASKED: list[dict[str, Any]] = [
    {"tool": "kernels", **DOUBLE},
    {"tool": "same", "place": "kernels.py:double", "reference": "kernels.py:plain", "args": "f32[32,128]"},
    {"tool": "ask", "name": "padding", "layouts": ["f32[1000,5]"], "target": "v5e", "at_most": "50%"},
    {"tool": "compile", "program": "kernels.py:plain", "arg": ["f32[32,128]"], "target": ["cpu"]},
    {"tool": "why", "given": "f32[1000,5]", "target": "v5e"},
    {"tool": "search", "problem": "matmul", "sizes": [512, "512", 512], "dtype": "bf16", "target": "v5e", "best": 1},
    {"tool": "explain", "name": "injective"},
    {"tool": "ask", "name": "injective", "layouts": ["f32[3,5] strides (4,1)"]},
    {"tool": "kernels", "place": "kernels.py:nothing"},
    {"tool": "kernels", **DOUBLE, "target": ["v5e", "v6e"]},
    {"tool": "ask", "name": "injectiv", "layouts": ["f32[3,5]"]},
    {"tool": "explain", "name": "--json"},
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: " ".join(map(str, asked.values()))[:40])
def test_a_tool_answers_what_its_command_prints(
    asked: dict[str, Any], served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same object; an answer without one is an error result."""
    monkeypatch.chdir(served.folder)
    arguments = {key: value for key, value in asked.items() if key != "tool"}
    result = served.call(asked["tool"], **arguments)
    expected = printed(capsys, *command_line(asked["tool"], arguments, ""))
    assert result.structured_content == expected
    assert result.is_error == ("error" in expected)
    assert result.content[0].text


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("ask", {"nam": "injective"}, "unknown argument 'nam'; did you mean 'name'?"),
        ("ask", {"name": "injective"}, "Missing argument"),
        ("kernel", {}, "unknown tool 'kernel'; did you mean 'kernels'?"),
        ("kernels", {**DOUBLE, "effort": 0}, "0 is not in the range"),
        ("kernels", {**DOUBLE, "strict_tables": "yes"}, "strict_tables of kernels is true or false, not 'yes'"),
        ("kernels", {**DOUBLE, "where": [["a"]]}, "a text or a number, or a list of them, not [['a']]"),
        ("kernels", {**DOUBLE, "record": "a.jsonl"}, "unknown argument 'record'"),
        ("kernels", {**DOUBLE, "args": "f32[8"}, "a list is written (2, 3)"),
    ],
)
def test_wrong_arguments_are_an_error_result(tool: str, arguments: dict[str, Any], words: str, served: Served) -> None:
    """With the sentence that the command line says; nothing is guessed."""
    result = served.call(tool, **arguments)
    assert result.is_error
    assert result.structured_content["exit_code"] == 2
    assert words in result.structured_content["error"]["message"]
    assert words in result.content[0].text


def test_an_edit_is_never_stale(served: Served) -> None:
    """Of a file that the function's imports, of the same size and within the same second; a new file; the function."""

    def verdict() -> int:
        code: int = served.ask("kernels", **DOUBLE)["exit_code"]
        return code

    assert verdict() == 0
    # Python itself would take its compiled form for current
    subprocess.run([sys.executable, "-c", "import served_rows"], cwd=served.folder, env=served.environment, check=True)
    before = (served.folder / "served_rows.py").stat()
    served.write(served_rows=SIZES.replace("32", "16"))
    os.utime(served.folder / "served_rows.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert verdict() == 1
    # a package of the name is found before the file
    (served.folder / "served_rows").mkdir()
    (served.folder / "served_rows" / "__init__.py").write_text(SIZES, "utf-8")
    assert verdict() == 0
    served.write(kernels=KERNELS.replace("lambda i: (i, 0)", "lambda i: (0, 0)"))
    assert verdict() == 1
    (served.folder / "served_rows" / "__init__.py").unlink()
    (served.folder / "served_rows").rmdir()
    served.write(kernels=KERNELS, served_rows=SIZES)
    assert verdict() == 0


def test_modules_of_one_name_in_two_folders_are_told_apart(served: Served) -> None:
    """A worker serves one set of modules: a helper that it has imported is not that of another folder."""
    other = served.folder / "other"
    other.mkdir()
    (other / "kernels.py").write_text(KERNELS, "utf-8")
    (other / "served_rows.py").write_text(SIZES.replace("32", "16"), "utf-8")
    assert served.ask("kernels", **DOUBLE)["exit_code"] == 0
    assert served.ask("kernels", **{**DOUBLE, "place": "other/kernels.py:double"})["exit_code"] == 1
    assert served.ask("kernels", **DOUBLE)["exit_code"] == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (EXITS, "the worker ended with exit code 7 on it"),
        (FALLS, "the worker ended by SIGSEGV on it (it read or wrote memory that is not its own)"),
        (HUNGRY, "MemoryError"),
    ],
    ids=["exit", "segfault", "memory"],
)
def test_a_crash_is_an_answer_and_the_server_goes_on(code: str, words: str, served: Served) -> None:
    """It is unknown, or bad input, and the next call is answered."""
    served.write(odd=code)
    result = served.call("kernels", place="odd.py:f", args="f32[8,128]")
    assert result.is_error
    assert words in result.structured_content["error"]["message"]
    assert result.structured_content["exit_code"] == (2 if code is HUNGRY else 3)
    assert served.ask("kernels", **DOUBLE)["exit_code"] == 0


def is_there(process: int) -> bool:
    """Whether a process runs."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def eventually(so: Callable[[], bool]) -> bool:
    """Whether it becomes so within 30 seconds."""
    until = time.monotonic() + 30
    while not so() and time.monotonic() < until:
        time.sleep(0.05)
    return so()


def test_cancelled_work_is_ended_and_tells_of_itself_until_then(served: Served) -> None:
    """The client gives up while it is told of the work; the process of the work ends, and the next call works."""
    served.write(odd=ENDLESS)
    served.progress.clear()
    called = served.portal.start_task_soon(lambda: served.waiting("kernels", place="odd.py:f", args="f32[8,128]"))
    begun = served.folder / "pid.txt"
    assert eventually(lambda: begun.is_file() and len(served.progress) > 1)
    called.cancel()
    times = [passed for passed, _ in served.progress]
    assert times == sorted(times)
    assert re.fullmatch("kernels, [0-9]+ s", served.progress[0][1])
    process = int(begun.read_text())
    begun.unlink()
    assert eventually(lambda: not is_there(process))
    assert served.ask("kernels", **DOUBLE)["exit_code"] == 0


def test_a_client_that_dies_is_no_error(folder: Path) -> None:
    """Nothing reads the answers any more, while a call still works: the server ends quietly, and its workers do."""
    (folder / "dies.py").write_text(ENDLESS.replace("pid.txt", "dies.txt"))
    words = [sys.executable, "-m", "layoutproof", "serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=environment(folder), cwd=folder, text=True, **pipes) as process:  # type: ignore[call-overload]

        def send(method: str, number: int | None = None, **params: object) -> None:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            process.stdin.write(json.dumps(message if number is None else {**message, "id": number}) + "\n")
            process.stdin.flush()

        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "one", "version": "1"}}
        send("initialize", 1, **client)
        assert json.loads(process.stdout.readline())["id"] == 1
        send("notifications/initialized")
        arguments = {"place": "dies.py:f", "args": "f32[8,128]"}
        send("tools/call", 2, name="kernels", arguments=arguments, _meta={"progressToken": 1})
        assert eventually((folder / "dies.txt").is_file)
        process.stdout.close()
        # until a message of progress cannot be written
        time.sleep(2)
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    assert eventually(lambda: not is_there(int((folder / "dies.txt").read_text())))


def test_a_picture_is_a_resource(served: Served) -> None:
    """Its address stands where the command names the file, and in the content; it is listed and read."""
    result = served.call("ask", name="injective", layouts=["f32[3,5] strides (4,1)"], picture=True)
    (address,) = result.structured_content["written"]
    assert str(result.content[1].uri) == address
    listed = served.portal.call(served.client.list_resources).resources
    assert address in [str(each.uri) for each in listed]
    (held,) = served.portal.call(served.client.read_resource, address).contents
    assert held.mime_type == "image/svg+xml"
    assert held.text.startswith("<svg")
    with pytest.raises(Exception, match="there is no picture"):
        served.portal.call(served.client.read_resource, "layoutproof://pictures/9999.svg")


def test_over_http_it_is_the_same_with_a_time_limit(by_http: Served, served: Served) -> None:
    """The worker is ended after its seconds, and the server goes on."""
    by_http.write(odd=ENDLESS)
    result = by_http.call("kernels", place="odd.py:f", args="f32[8,128]")
    assert result.is_error
    assert result.structured_content["error"]["message"] == "the worker did not come to an end within 4 s on it"
    process = int((served.folder / "pid.txt").read_text())
    assert eventually(lambda: not is_there(process))
    asked = {"name": "injective", "layouts": ["f32[3,5] strides (4,1)"]}
    assert by_http.ask("ask", **asked) == served.ask("ask", **asked)


def status(address: str, **headers: str) -> int:
    """Of the answer to a first message with these headers."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    }
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(address, json.dumps(message).encode(), {**usual, **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: int = answer.status
            return found
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_pages_of_the_web_are_refused(address: str) -> None:
    """By their origin, and by a name of theirs that leads to the loopback; the server's own origin is none."""
    port = address.rpartition(":")[2].partition("/")[0]
    assert status(address) == 200
    assert status(address, Origin=f"http://127.0.0.1:{port}") == 200
    assert status(address, Origin="https://evil.example") == 403
    assert status(address, Origin=f"http://evil.example:{port}") == 403
    assert status(address, Origin=f"http://localhost:{int(port) + 1}") == 403
    assert status(address, Origin="null") == 403
    assert status(address, Host=f"evil.example:{port}") == 421


@pytest.mark.parametrize("where", ["0.0.0.0:8765", "192.168.1.2:8765", "[::]:8765", ":8765"])
def test_no_other_address_is_served(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The refusal says why, and what to do."""
    assert run(["serve", "--http", where]) == 2
    said = capsys.readouterr().err
    assert "whoever reaches the server runs code as you, so it is served on 127.0.0.1 only" in said
    assert "ssh -L" in said


def test_without_the_sdk_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3, as of all that is not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp_types" else found(name))
    assert run(["serve"]) == 3
    assert "pip install 'mcp>=2,<3'" in capsys.readouterr().err
