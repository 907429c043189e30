"""Every property can be asked everywhere, with the same answer: `lp.ask`, `ask`, a spec file, `kernels --property`.

A door that knows one property less, or takes one of its options for something else, shows here; so does a property that
had nothing to ask and is proved.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.registry.catalogue import kernel_properties, layouts_of, options_of, properties

pytestmark = pytest.mark.slow

RICH: dict[str, Any] = {
    "grid": {"i": 4, "j": 2},
    "semantics": ["parallel", "arbitrary"],
    "tables": {"t": {"array": "s32[4]", "assume": ["0 <= t < 4"]}},
    "inputs": [
        {"name": "x", "array": "f32[30,256]", "block": [8, 128], "index": "(i, j) -> (i, j)"},
        {"name": "y", "array": "f32[32,256]", "block": [8, 128], "index": "(i, j) -> (t[i], j)"},
        {"name": "e", "array": "f32[32,256]", "block": ["Element(8)", "Element(128)"], "index": "(i, j) -> (i*8, 0)"},
    ],
    "outputs": [{"name": "o", "array": "f32[30,256]", "block": [8, 128], "index": "(i, j) -> (i, j)"}],
    "aliases": {"x": "o"},
}
"""A kernel of which every property has something to ask, but for those of bodies."""
EMPTY: dict[str, Any] = {
    "grid": [4],
    "inputs": [{"name": "x", "array": "f32[32,128]", "memory": "any"}],
    "outputs": [{"name": "o", "array": "f32[32,128]", "memory": "any"}],
}
"""A kernel without windows."""
OPTIONS = {"in_bounds": {"within": "{p0: 32}"}, "owners": {"owner": "[p0]"}}
MAP = "(i < 256) -> (i // 8, i % 8) in [32, 8]"
SHARDED = "f32[64,128] sharded {devices=[2,2]<=[4]}"
LAYOUTS = {"in_bounds": MAP, "owners": MAP, "even": SHARDED, "owned": SHARDED}


def kernel_doors(name: str, kernel: dict[str, Any], out: Any, target: str | None) -> dict[str, tuple[str, str]]:
    """(verdict, reason) by door; a door that is shut says with which exit code."""
    given = {} if target is None else {"target": target}
    asked = lp.ask(name, {"kernel": kernel}, **given)
    found = {"lp.ask": (asked.verdict.value, asked.reason)}
    flags = [] if target is None else ["--target", target]
    text = json.dumps({"kernel": kernel})
    cli.run(["ask", name, text, *flags, "--json"])
    found["ask"] = said(out.readouterr().out)
    check = {"layouts": {"k": {"kernel": kernel}}, "checks": [{name: "k", **given}]}
    Path("spec.yaml").write_text(json.dumps(check))
    cli.run(["check", "spec.yaml", "--json"])
    (result,) = json.loads(out.readouterr().out)["results"]
    found["check"] = (result["verdict"], result["reason"])
    Path("kernels.yaml").write_text(json.dumps({"layouts": {"k": {"kernel": kernel}}, "checks": [{"kernel": "k"}]}))
    cli.run(["kernels", "kernels.yaml", "--property", name, *flags, "--json"])
    (call,) = json.loads(out.readouterr().out)["kernels"]
    # a finding that is only a warning or an info decides nothing of the call; here it is what was asked
    order = ["refuted", "unknown", "proved"]
    worst = min([f["verdict"] for f in call["findings"]], key=order.index)
    worst = "unknown" if call["reason"] and worst == "proved" else worst
    reasons = [call["reason"], *(f["reason"] for f in call["findings"] if f["verdict"] == worst)]
    found["kernels"] = (worst, next(filter(None, reasons), ""))
    return found


def said(text: str) -> tuple[str, str]:
    answer = json.loads(text)
    return answer["verdict"], answer["reason"]


@pytest.mark.parametrize("target", [None, "v5e", "triton"])
@pytest.mark.parametrize("name", kernel_properties())
def test_properties_of_kernels(
    name: str, target: str | None, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    from layoutproof.registry.catalogue import kernel_property

    if target is None and kernel_property(name).TARGET:
        with pytest.raises(lp.LayoutError, match=f"{name} is about a hardware target; give one"):
            lp.ask(name, {"kernel": RICH})
        return
    for kernel in (RICH, EMPTY, {**EMPTY, "platform": "triton"}):
        verdicts = {door: verdict for door, (verdict, _) in kernel_doors(name, kernel, capsys, target).items()}
        assert len(set(verdicts.values())) == 1, verdicts


@pytest.mark.parametrize("name", kernel_properties())
def test_nothing_asked_is_unknown_with_words(
    name: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a kernel without windows only what speaks of the grid or of whole arrays can be proved."""
    monkeypatch.chdir(tmp_path)
    about_the_whole = {"block_shape", "legal_for_target", "memory_budget", "relayout"}
    for door, (verdict, reason) in kernel_doors(name, EMPTY, capsys, "v5e").items():
        if name in about_the_whole:
            assert verdict == "proved", door
        else:
            assert verdict == "unknown", door
            assert reason, door


ELSEWHERE = ("compiled", "known_bugs", "known_jax_bugs")


@pytest.mark.parametrize("name", sorted(set(kernel_properties())))
def test_something_is_asked_of_a_rich_kernel(name: str) -> None:
    """The twin: what has something to ask is settled, and does not say that it is not applicable.

    But for the body, which is not here, the compiler, whom nobody asked, and known bugs, of which it meets none.
    """
    found = lp.ask(name, {"kernel": RICH}, target="v5e")
    if getattr(__import__(f"layoutproof.pallas.rules.{name}", fromlist=["BODY"]), "BODY", False) or name in ELSEWHERE:
        assert found.reason.startswith("not applicable: ")
    else:
        assert "not applicable" not in found.reason
        assert "asked" not in found.figures


@pytest.mark.parametrize("name", properties())
def test_properties_of_layouts(name: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layouts = [LAYOUTS.get(name, "f32[8,128]{1,0}")] * layouts_of(name)
    given = OPTIONS.get(name, {})
    assert set(given) <= set(options_of(name))
    flags = [part for option, value in given.items() for part in (f"--{option}", value)]
    cli.run(["ask", name, *layouts, *flags, "--json"])
    asked = said(capsys.readouterr().out)[0]
    lines = "".join(f", {option}: {value}" for option, value in given.items())
    about = json.dumps(layouts if len(layouts) > 1 else layouts[0])
    Path("spec.yaml").write_text(f"checks:\n  - {{{name}: {about}{lines}}}\n")
    cli.run(["check", "spec.yaml", "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    plain = {"within": {"p0": 32}, "owner": ["p0"]}
    of_library = lp.ask(name, *layouts, **{option: plain[option] for option in given}).verdict.value
    assert asked == result["verdict"] == of_library == "proved"
    # no property of layouts is one of kernels
    assert cli.run(["kernels", "spec.yaml", "--property", name]) == 2
