"""What reads Mosaic modules: a child process that may die, and the commands that show what it found."""

from __future__ import annotations

import base64
import json
import random
import textwrap
from pathlib import Path

import pytest

jax = pytest.importorskip("jax", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.cli import main as cli  # noqa: E402
from layoutproof.core.errors import LayoutError  # noqa: E402
from layoutproof.hlo.audit import audit  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_calls import MosaicCall  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_child import read_modules  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_of_calls  # noqa: E402
from tests.pallas.mosaic_texts import call_line, config, lowered  # noqa: E402
from tests.pallas.pitfalls import PITFALLS  # noqa: E402

pytestmark = pytest.mark.slow


def fake(tmp_path: Path, answer: str) -> Path:
    """A reader whose answer to `text` is made so."""
    path = tmp_path / "worker.py"
    start = "import os, sys, time\nfrom layoutproof.compiler.serve import serve\n"
    body = textwrap.indent(textwrap.dedent(answer), "    ")
    end = "serve(answer, again=lambda said: 'error' not in said)\n"
    path.write_text(f"{start}def answer(text, tell):\n{body}\n    return {{'attributes': os.getpid()}}\n{end}")
    return path


def test_a_reader_that_aborts_takes_nobody_along(tmp_path: Path) -> None:
    found = read_modules(["a", "bad", "b", "bad"], worker=fake(tmp_path, "if text == 'bad': os.abort()"))
    assert [sorted(each) for each in found] == [["attributes"], ["error"], ["attributes"], ["error"]]
    assert found[1]["error"].startswith("jaxlib's reader of Mosaic modules ended by SIGABRT on it")


def test_after_an_error_a_new_reader_reads(tmp_path: Path) -> None:
    script = "if text == 'bad': return {'error': 'no module'}"
    found = read_modules(["a", "b", "bad", "c", "bad", "bad", "d"], worker=fake(tmp_path, script))
    assert [each.get("error", "") for each in found] == ["", "", "no module", "", "no module", "no module", ""]
    readers = [each["attributes"] for each in found if "attributes" in each]
    assert readers[0] == readers[1]
    assert len(set(readers)) == 3


def test_a_reader_that_hangs_is_ended(tmp_path: Path) -> None:
    (found,) = read_modules(["a"], patience=0.5, worker=fake(tmp_path, "time.sleep(1000)"))
    assert found == {"error": "jaxlib's reader of Mosaic modules did not come to an end within 0.5 s on it"}


def test_a_reader_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    (found,) = read_modules(["a"], worker=fake(tmp_path, "sys.exit('out of memory')"))
    assert found["error"].startswith("jaxlib's reader of Mosaic modules ended with exit code 1 on it")
    assert found["error"].endswith(": out of memory")


def test_without_jaxlib_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jaxlib.py").write_text("raise ImportError('no jaxlib here')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LayoutError, match=r"needs jax: pip install jax \(no jaxlib here\)"):
        read_modules(["a"])


def test_bytes_that_are_no_module_end_nothing() -> None:
    """Real modules with bits flipped, parts left out or put in: a kernel or words, whatever jaxlib makes of them."""
    draw = random.Random(0)
    (real,) = calls_in(lowered(PITFALLS[23].right()))
    module = base64.b64decode(json.loads(real.config)["custom_call_config"]["body"])
    calls = []
    for _ in range(16):
        made, at = bytearray(module), draw.randrange(len(module))
        kind = draw.choice(["flip", "cut", "put"])
        if kind == "flip":
            made[at] ^= 1 << draw.randrange(8)
        made = made[:at] if kind == "cut" else made
        made[at:at] = draw.randbytes(draw.choice([1, 4, 50])) if kind == "put" else b""
        text = json.dumps({"custom_call_config": {"body": base64.b64encode(bytes(made)).decode()}})
        calls.append(MosaicCall("copy", "x:1", text, real.operands, real.results, live=(True,)))
    found = kernels_of_calls(calls)
    assert len(found) >= len(calls)
    assert all(isinstance(each, Kernel) or each.reason for each in found)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`layoutproof kernels FILE`: proved, refuted, nothing there, and what cannot be read."""
    texts = {
        "right.hlo": lowered(PITFALLS[0].right()),
        "wrong.txt": lowered(PITFALLS[0].wrong()),
        "none.txt": jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), "float32")).as_text(),
        "cut.txt": call_line(config()[:-30]),
        "notes.txt": "not a program\n",
    }
    codes, shown = {}, {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        codes[name] = cli.run(("kernels", str(tmp_path / name), "--target", "v5e"))
        shown[name] = "".join(capsys.readouterr())
    assert codes == {"right.hlo": 0, "wrong.txt": 1, "none.txt": 3, "cut.txt": 3, "notes.txt": 2}
    assert "refuted  blocks_in_bounds  outputs[0] f32[24,128] block (8, 128)" in shown["wrong.txt"]
    assert f"copy   {tmp_path / 'wrong.txt'}:3" in shown["wrong.txt"]
    assert "makes no Pallas call" in shown["none.txt"]
    assert "its backend_config is no JSON" in shown["cut.txt"]
    assert "neither HLO text" in shown["notes.txt"]


def test_kernels_in_an_audited_dump() -> None:
    """`layoutproof hlo` judges them too; a broken one is unknown, and says why."""
    right, wrong = PITFALLS[0].right(), PITFALLS[0].wrong()
    both = {"right": right, "wrong": wrong}
    texts = {}
    for name, (function, arguments) in both.items():
        made = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
        texts[name] = made.as_text(dialect="hlo")
    texts["broken"] = texts["right"].replace('"body": "TUz', '"body": "AAA')
    found = {name: audit(text.splitlines(keepends=True), f"{name}.txt", "v5e") for name, text in texts.items()}
    assert {name: dict(each.kernels) for name, each in found.items()} == {
        "right": {"proved": 1},
        "wrong": {"refuted": 1},
        "broken": {"unknown": 1},
    }
    (wrong,) = found["wrong"].wrong_kernels
    assert (wrong.question, "outputs[0] dimension 0" in wrong.reason) == ("blocks_in_bounds", True)
    assert any("the module in it cannot be read" in why for *_, why in found["broken"].unknown)
    assert found["right"].kernels.total() == 1
