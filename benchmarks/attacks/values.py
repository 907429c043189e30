"""A pull request's claims about values, and texts whose values are compared: no code of it runs, and each one ends."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.attacks.bombs import _read
from benchmarks.attacks.room import RAN, git

NIGHT = ("functions_beyond_the_list", "texts_that_would_not_end")
_EVIL = "import pathlib\npathlib.Path({told!r}).write_text('ran')\ndef step(x):\n    return x\n"
_BEYOND = ("evil:step", "evil.inner:step", "os:system", "builtins:exec", "subprocess:run", "pkg:os.system")
_HEAD = "HloModule m\n\n"
_ENTRY = "ENTRY %e (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n{lines}}}\n"


def functions_not_traced(room: Path) -> str:
    """A pull request claims that functions of its own compute the same: `check` and `gate` under `--no-trace`."""
    work = _claims(room, [])
    git(work, "checkout", "-q", "-b", "head")
    said = _read(work, "check", (3,), "check", "specs", "--no-trace")
    (work / "specs" / "a.yaml").write_text(_spec("evil:step", "evil:other"))
    said += _read(work, "check", (3,), "check", "specs", "--no-trace")
    for more in ((), ("--same-function",)):
        said += _read(work, f"gate {more}", (1, 3), "gate", "specs", "--against", "main", "--no-trace", *more)
    return said + _ran(room)


def functions_beyond_the_list(room: Path) -> str:
    """A pull request claims that functions compute the same which its base's list of modules does not have."""
    work = _claims(room, ["pkg"])
    git(work, "checkout", "-q", "-b", "head")
    # a change cannot allow itself
    (work / "pyproject.toml").write_text(
        '[tool.layoutproof]\ntrace = ["pkg", "evil", "os", "builtins", "subprocess"]\n'
    )
    said = ""
    for one in _BEYOND:
        for spec in (_spec(one, "pkg:step"), _spec("pkg:step", one)):
            (work / "specs" / "a.yaml").write_text(spec)
            said += _read(
                work, f"gate {one}", (1, 2, 3), "gate", "specs", "--against", "main", "--same-function", memory=64 << 30
            )
    return said + _ran(room)


def texts_that_would_not_end(room: Path) -> str:
    """Two dumps have loops of 2^31 steps, loops in loops, calls that double, and branches nested without end."""
    work = _claims(room, [])
    for name, text in _texts().items():
        for folder, written in (("old", text), ("new", text.replace("sine(", "cosine("))):
            (work / folder).mkdir(exist_ok=True)
            (work / folder / "a.txt").write_text(written)
        found = _read(work, name, (0, 1, 2, 3), "gate", "old", "new")
        if found:
            return found
    return ""


def _texts() -> dict[str, str]:
    loops = _loop(0, "2147483647", "f32[8]{0} sine(%x.0)")
    for k in range(1, 8):
        loops += _loop(k, "100000", f"f32[8]{{0}} call(%x.{k}), to_apply=%run.{k - 1}")
    doubled = _function("c.0", "  ROOT %r.0 = f32[8]{0} sine(%a.0)\n", 0)
    for k in range(1, 64):
        lines = f"  %s.{k} = f32[8]{{0}} call(%a.{k}), to_apply=%c.{k - 1}\n"
        doubled += _function(f"c.{k}", f"{lines}  ROOT %r.{k} = f32[8]{{0}} call(%s.{k}), to_apply=%c.{k - 1}\n", k)
    deep = _function("c.0", "  ROOT %r.0 = f32[8]{0} sine(%a.0)\n", 0)
    for k in range(1, 20_000):
        deep += _function(f"c.{k}", f"  ROOT %r.{k} = f32[8]{{0}} call(%a.{k}), to_apply=%c.{k - 1}\n", k)
    branches = _function("c.0", "  ROOT %r.0 = f32[8]{0} sine(%a.0)\n", 0)
    for k in range(1, 2_000):
        lines = f"  %z.{k} = s32[] constant(0)\n  ROOT %r.{k} = f32[8]{{0}} conditional(%z.{k}, %a.{k}, %a.{k}), "
        branches += _function(f"c.{k}", f"{lines}branch_computations={{%c.{k - 1}, %c.{k - 1}}}\n", k)
    itself = "%c.0 (a: f32[8]) -> f32[8] {\n  %a = f32[8]{0} parameter(0)\n  %s = f32[8]{0} sine(%a)\n"
    itself += "  ROOT %r = f32[8]{0} call(%s), to_apply=%c.0\n}\n\n"
    many = "HloModule m, num_partitions=2000000000, replica_count=2000000000\n\n"
    sums = "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
    sums += "  ROOT %z = f32[] add(%x, %y)\n}\n\n"
    tuples, shape = "", "f32[8]{0}"
    for k in range(200):
        inner = "%p" if not k else f"%t.{k - 1}"
        shape = f"({shape}, {shape})" if k < 12 else f"({shape})"
        tuples += f"  %t.{k} = {shape} tuple({f'{inner}, {inner}' if k < 12 else inner})\n"
    return {
        "a loop of 2^31 steps": _HEAD + _loop(0, "2147483647", "f32[8]{0} sine(%x.0)") + _called("run.0"),
        "loops in loops": _HEAD + loops + _called("run.7"),
        "calls that double": _HEAD + doubled + _called("c.63"),
        "calls that are deep": _HEAD + deep + _called("c.19999"),
        "branches that are deep": _HEAD + branches + _called("c.1999"),
        "a call of itself": _HEAD + itself + _called("c.0"),
        "devices without end": many + sums + _ENTRY.format(
            lines="  %s = f32[8]{0} sine(%p)\n  ROOT %r = f32[8]{0} all-reduce(%s), channel_id=1, "
            "replica_groups=[1,4000000000]<=[4000000000], use_global_device_ids=true, to_apply=%add\n"
        ),
        "tuples that are deep": _HEAD + _ENTRY.format(lines=f"{tuples}  ROOT %r = f32[8]{{0}} sine(%p)\n"),
        "an array beyond any memory": _HEAD + _ENTRY.format(
            lines="  %w = f32[8,999999999,999999999]{2,1,0} broadcast(%p), dimensions={0}\n"
            "  %s = f32[8,999999999,999999999]{2,1,0} sine(%w)\n"
            "  %t = f32[8,1,1]{2,1,0} slice(%s), slice={[0:8], [0:1], [0:1]}\n  ROOT %r = f32[8]{0} reshape(%t)\n"
        ),
    }  # fmt: skip


def _called(name: str) -> str:
    return _ENTRY.format(lines=f"  ROOT %r = f32[8]{{0}} call(%p), to_apply=%{name}\n")


def _function(name: str, lines: str, k: int) -> str:
    return f"%{name} (a.{k}: f32[8]) -> f32[8] {{\n  %a.{k} = f32[8]{{0}} parameter(0)\n{lines}}}\n\n"


def _loop(k: int, trips: str, step: str) -> str:
    """A computation `run.k` of one array, which makes so many times a step of it."""
    carried = "(s32[], f32[8]{0})"
    return (
        f"%body.{k} (t.{k}: (s32[], f32[8])) -> (s32[], f32[8]) {{\n  %t.{k} = {carried} parameter(0)\n"
        f"  %i.{k} = s32[] get-tuple-element(%t.{k}), index=0\n"
        f"  %x.{k} = f32[8]{{0}} get-tuple-element(%t.{k}), index=1\n"
        f"  %one.{k} = s32[] constant(1)\n  %j.{k} = s32[] add(%i.{k}, %one.{k})\n  %y.{k} = {step}\n"
        f"  ROOT %n.{k} = {carried} tuple(%j.{k}, %y.{k})\n}}\n\n"
        f"%goes.{k} (u.{k}: (s32[], f32[8])) -> pred[] {{\n  %u.{k} = {carried} parameter(0)\n"
        f"  %h.{k} = s32[] get-tuple-element(%u.{k}), index=0\n  %m.{k} = s32[] constant({trips})\n"
        f"  ROOT %q.{k} = pred[] compare(%h.{k}, %m.{k}), direction=LT\n}}\n\n"
        + _function(
            f"run.{k}", f"  %z.{k} = s32[] constant(0)\n  %s.{k} = {carried} tuple(%z.{k}, %a.{k})\n"
            f"  %w.{k} = {carried} while(%s.{k}), condition=%goes.{k}, body=%body.{k}\n"
            f"  ROOT %r.{k} = f32[8]{{0}} get-tuple-element(%w.{k}), index=1\n", k,
        )
    )  # fmt: skip


def _spec(function: str, reference: str) -> str:
    """A spec file whose claims name two functions: as kernels, and one as a program."""
    args = ["f32[8,128]"]
    return json.dumps({
        "source": "x",
        "kernels": {"k": {"trace": function, "args": args}, "r": {"trace": reference, "args": args}},
        "programs": {"p": {"function": function, "args": args, "target": "cpu"}},
        "checks": [{"same": "k", "as": "r"}, {"same_function": "p"}],
    })  # fmt: skip


def _claims(room: Path, allowed: list[str]) -> Path:
    """A repository whose base allows some modules, and has harmless claims; beside them the stranger's modules."""
    work = room / "work"
    (work / "specs").mkdir(parents=True)
    (work / "evil").mkdir()
    told = str(room / RAN)
    for name in ("__init__", "inner"):
        (work / "evil" / f"{name}.py").write_text(_EVIL.format(told=told))
    (work / "pkg.py").write_text("import os\nimport jax.numpy as jnp\ndef step(x):\n    return jnp.tanh(x)\n")
    (work / "specs" / "a.yaml").write_text(_spec("pkg:step", "pkg:step"))
    (work / "pyproject.toml").write_text(f"[tool.layoutproof]\ntrace = {json.dumps(allowed)}\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    return work


def _ran(room: Path) -> str:
    return f"{RAN} was written\n" if (room / RAN).exists() else ""
