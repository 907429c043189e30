"""Chromium, headless, at a page that is served from a folder of this machine."""

from __future__ import annotations

import functools
import shutil
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")


class _Quiet(SimpleHTTPRequestHandler):
    """Says nothing, and knows what modules and WebAssembly are."""

    def guess_type(self, path: Any) -> str:
        """The type of a file by its name."""
        known = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm"}
        return known.get(Path(path).suffix) or str(super().guess_type(path))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which a folder is served meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of playwright's, with the Chromium of the system."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # a container has no name spaces for a sandbox; the pages are our own
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def timings(folder: Path) -> str:
    """How long the page takes to be ready, to answer first, and then, as a table; each in a fresh profile."""
    texts = ("f32%5BN,M%5D%7B1,0:T(8,128)%7D", "f32%5B3,5%5D%20strides%20(4,1)", "bf16%5B4096,11008%5D&target=v5e")
    questions = [f"#mode=layout&layout={text}" for text in texts]
    rows = []
    with served(folder) as address, chromium() as browser:
        for _ in range(3):
            context = browser.new_context()
            page = context.new_page()
            page.goto(address)
            page.wait_for_selector("#result .finding", timeout=120_000)
            for question in questions:
                page.evaluate("hash => { location.hash = hash }", question)
                page.wait_for_function("n => window.timings.questions.length === n", arg=2 + questions.index(question))
            found = page.evaluate("window.timings")
            rows.append((found["load"], found["questions"][0], statistics.median(found["questions"][1:])))
            context.close()
    names = ("load", "first question", "later question")
    middle = [statistics.median(row[k] for row in rows) for k in range(3)]
    cells = "\n".join(f"| {name} | {ms:.0f} ms |" for name, ms in zip(names, middle, strict=True))
    return f"| Chromium {browser.version}, median of 3 | |\n|---|---:|\n{cells}"
