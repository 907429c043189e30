"""Planted causes: `python benchmarks/causes.py [--only NAME] [--unseen] [--blame] [--jobs N]`.

Eight programs, each in a repository of its own, and thirty edits of them: one line each that makes a new collective, a
copy, another layout or more memory, among edits that do not (lines above it, another constant, a renamed helper). The
gate compares both trees (`--against HEAD --compile-base`), and it is counted how often the line that was planted is the
first that it names: by the values that the sources state, by the two compiled texts alone, and, with `--blame`, as the
hunk that is left. Of a line that was taken away the right line is the old one, or that of the new file before which it
stood. The exit code is 1 where fewer than nine
in ten are right, or where a collective is called new that only moved by a line. `--unseen` takes seventeen others in
four programs, which were written after the rules.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __package__ != "benchmarks":
    sys.path[0] = str(ROOT)

from layoutproof.answers.of_states import MOST_COMPILES  # noqa: E402
from layoutproof.core.finding import Finding, Report  # noqa: E402
from layoutproof.gating import spec_programs, specs, states  # noqa: E402
from layoutproof.gating.blame import blamed  # noqa: E402
from layoutproof.gating.first_change import caused, changed  # noqa: E402
from layoutproof.gating.text_rows import text_rows  # noqa: E402
from layoutproof.programs.compile import Made  # noqa: E402

FOLDER = ROOT / "benchmarks" / "planted_causes"
SETTINGS = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
SPEC = "specs/a.yaml"


@dataclass(frozen=True)
class Plant:
    """An edit of one line. program: of which file.  old, new: the text that changes in it.  makes: the classes one of
    which is to be found.  file: where; `specs/a.yaml` for how the program is asked for."""

    name: str
    program: str
    old: str
    new: str
    makes: tuple[str, ...]
    file: str = "model.py"


EXCHANGE = ("new_collective", "grown_collective", "exchanged_collective", "regrouped")
COPY = ("new_copy", "relaid_parameter", "moved", "abi", "grew")
GROWTH = ("peak_memory", "temporaries", "lost_donation")

PLANTS = (
    Plant("gathered", "mlp", "h = put(h, P('data', 'model'))", "h = put(h, P('data', None))", EXCHANGE),
    Plant("other axis", "mlp", "y = put(y, P('data', None))", "y = put(y, P('model', None))", EXCHANGE),
    Plant(
        "argument",
        "mlp",
        "P(None, 'model')\", \"P('model', None)",
        "P('model', None)\", \"P('model', None)",
        EXCHANGE,
        "specs/a.yaml",
    ),
    Plant(
        "heads",
        "attention",
        "q = put(q, P('data', None, 'model', None))",
        "q = put(q, P('data', 'model', None, None))",
        EXCHANGE,
    ),
    Plant(
        "whole keys",
        "attention",
        "k = put(k, P('data', None, 'model', None))",
        "k = put(k, P('data', None, None, None))",
        EXCHANGE,
    ),
    Plant(
        "merged",
        "attention",
        "o = o.reshape(b, s, H * D)",
        "o = o.transpose(0, 2, 1, 3).reshape(b, s, H * D)",
        EXCHANGE,
    ),
    Plant(
        "scores",
        "attention",
        "p = jax.nn.softmax(s, axis=-1)",
        "p = jax.nn.softmax(put(s, P(None, 'model', None, None)), axis=-1)",
        EXCHANGE,
    ),
    Plant("gradient", "train", "g = put(g, P(None, 'model'))", "g = put(g, P(None, None))", EXCHANGE),
    Plant("global norm", "train", "scale = 1e-2", "scale = 1e-2 / jnp.sqrt(jnp.sum(grads[0] ** 2) + 1.0)", EXCHANGE),
    Plant("not donated", "train", "donate: [0, 1]", "donate: [0]", GROWTH, "specs/a.yaml"),
    Plant("batch", "train", "x = put(x, P('data', None))", "x = put(x, P(None, None))", EXCHANGE),
    Plant("summed", "expert", "return y * gate", "return jax.lax.psum(y * gate, 'expert') / 8", EXCHANGE),
    Plant(
        "all to all",
        "expert",
        "y = jax.lax.all_to_all(y, 'expert', 1, 0, tiled=True)",
        "y = jax.lax.all_gather(y, 'expert', axis=1, tiled=True)[:y.shape[0]][:, :y.shape[1]]",
        EXCHANGE,
    ),
    Plant(
        "specs of the map",
        "expert",
        "IN = (P('expert', None), P('expert', None, None))",
        "IN = (P('expert', None), P(None, None, None))",
        EXCHANGE,
    ),
    Plant(
        "balance",
        "expert",
        "load = jnp.mean(gate)",
        "load = jnp.mean(gate - jnp.max(gate, axis=0, keepdims=True))",
        EXCHANGE,
    ),
    Plant("not rematerialized", "deep", "    @jax.checkpoint\n", "", GROWTH),
    Plant("all states", "deep", "return x, None", "return x, x", GROWTH),
    Plant(
        "running sum",
        "deep",
        "c = jnp.exp(-b) * jnp.cos(a)",
        "c = jnp.exp(-b) * jnp.cumsum(jnp.cos(a[:, :, None] + b[:, None, :]), axis=2)[:, :, -1]",
        GROWTH,
    ),
    Plant("wide", "deep", "a = jnp.einsum('bd,de->be', x, w)", "a = jnp.einsum('bd,de->bde', x, w).sum(1)", GROWTH),
    Plant("unstated", "embedding", "    table = put(table, P(None, None))\n", "", EXCHANGE),
    Plant("tokens", "embedding", "e = put(e, P('data', None, None))", "e = put(e, P(None, None, 'model'))", EXCHANGE),
    Plant(
        "logits",
        "embedding",
        "logits = put(logits, P('data', None, 'model'))",
        "logits = put(logits, P('data', None, None))",
        EXCHANGE,
    ),
    Plant(
        "sorted", "embedding", "best = jnp.max(logits, axis=-1)", "best = jnp.sort(logits, axis=-1)[..., -1]", EXCHANGE
    ),
    Plant("table", "embedding", "P('model', None)", "P(None, 'model')", EXCHANGE, "specs/a.yaml"),
    Plant(
        "other order",
        "decode",
        "s = jnp.einsum('bhd,bshd->bhs', q, k)",
        "s = jnp.einsum('bhd,bshd->bhs', q, k.transpose(0, 2, 1, 3).reshape(k.shape))",
        COPY + GROWTH,
    ),
    Plant("cache not donated", "decode", "donate: [1]", "donate: []", GROWTH, "specs/a.yaml"),
    Plant("kept cache", "decode", "return o, k", "return o + old.sum(), k", GROWTH + COPY),
    Plant(
        "turned image",
        "image",
        "return y.reshape(y.shape[0], -1)",
        "return y.transpose(0, 3, 1, 2).reshape(y.shape[0], -1)",
        COPY,
    ),
    Plant(
        "turned weights",
        "image",
        "y = y @ w.reshape(w.shape[0], -1)",
        "y = y @ w.transpose(1, 0, 2).reshape(w.shape[0], -1)",
        COPY + GROWTH,
    ),
    Plant(
        "channels first",
        "image",
        "z = jnp.concatenate([y, x], axis=3)",
        "z = jnp.concatenate([y.swapaxes(1, 2), x], axis=3)",
        COPY + GROWTH,
    ),
)

UNSEEN = (
    Plant("tokens whole", "moe", 'TOKENS = P("data", None)', "TOKENS = P(None, None)", EXCHANGE + GROWTH),
    Plant("experts by data", "moe", "    y = on(y, EXPERTS)", "    y = on(y, P(None, None, None))", EXCHANGE + GROWTH),
    Plant(
        "weights cut",
        "moe",
        "\"P('expert', None, None)\", \"P('expert', None, None)\"",
        "\"P('expert', None, None)\", \"P(None, None, 'expert')\"",
        EXCHANGE + GROWTH,
        "specs/a.yaml",
    ),
    Plant(
        "cumsum of experts",
        "moe",
        "place = jnp.cumsum(mask, axis=0) - 1",
        "place = jnp.cumsum(jax.lax.with_sharding_constraint(mask, P(None, None)), axis=0) - 1",
        EXCHANGE + GROWTH,
    ),
    Plant(
        "state by width",
        "rnn",
        '        h = lax.with_sharding_constraint(h, P("data", None))',
        '        h = lax.with_sharding_constraint(h, P(None, "data"))',
        EXCHANGE + GROWTH,
    ),
    Plant(
        "weights by width",
        "rnn",
        '"P()", "P()", "P(None',
        '"P()", "P(None, \'data\')", "P(None',
        EXCHANGE + GROWTH,
        "specs/a.yaml",
    ),
    Plant(
        "batch norm",
        "rnn",
        'gates = x @ w["x"] + h @ w["h"]',
        'gates = x @ w["x"] + (h - h.mean(0)) @ w["h"]',
        EXCHANGE + GROWTH,
    ),
    Plant(
        "all states",
        "rnn",
        "        return (h, c), h\n",
        "        return (h, c), (h, c)[0] * c.sum()\n",
        EXCHANGE + GROWTH,
    ),
    Plant("total over batch", "rnn", "total = hs.sum(axis=0)", "total = hs.sum(axis=(0, 1))", EXCHANGE + GROWTH),
    Plant(
        "gather all",
        "halo",
        'above = lax.ppermute(x[-1:], "rows", DOWN)',
        'above = lax.all_gather(x[-1:], "rows")[(lax.axis_index("rows") - 1) % N]',
        EXCHANGE + GROWTH,
    ),
    Plant(
        "global change",
        "halo",
        "change = jnp.abs(y - x).max()",
        'change = lax.pmax(jnp.abs(y - x).max(), "rows")',
        EXCHANGE + GROWTH,
    ),
    Plant(
        "global mean",
        "halo",
        "y = y - y.mean(axis=1, keepdims=True)",
        'y = y - lax.pmean(y, "rows").mean(axis=1, keepdims=True)',
        EXCHANGE + GROWTH,
    ),
    Plant(
        "two rows",
        "halo",
        'below = lax.ppermute(x[:1], "rows", UP)',
        'below = lax.ppermute(x[:8], "rows", UP)[:1]',
        EXCHANGE + GROWTH,
    ),
    Plant("turned rows", "halo", "y, change = f(x)", "y, change = f(jnp.flip(x, 0))", EXCHANGE + GROWTH),
    Plant(
        "heads first",
        "vit",
        "qkv = (x @ wqkv).reshape(b, n, 3, HEADS, d // HEADS)",
        "qkv = (x @ wqkv).reshape(b, n, HEADS, d // HEADS, 3).transpose(0, 1, 4, 2, 3)",
        COPY + GROWTH,
    ),
    Plant("not donated", "vit", "donate: [0]", "donate: []", GROWTH, "specs/a.yaml"),
    Plant(
        "sorted scores",
        "vit",
        "p = jax.nn.softmax(s)",
        "p = jax.nn.softmax(s - jnp.sort(s, axis=-1)[..., -1:])",
        COPY + GROWTH,
    ),
)
"""Plants that were written when the rules were done, and tried once before any rule was changed for them."""


@dataclass(frozen=True)
class Outcome:
    """What became of a plant. found: classes that the gate found.  stated, texts, hunk: the first line that is named by
    both sources, both texts, parts of the diff; "" for none.  right: the line that was planted.  compiled: notes
    on the last."""

    plant: Plant
    found: tuple[str, ...]
    stated: str
    texts: str
    hunk: str
    right: str
    compiled: str = ""
    seconds: float = 0.0


def files_of(program: str) -> dict[str, str]:
    """The files of a program, by path."""
    return {
        "model.py": (FOLDER / f"{program}.py").read_text(),
        "specs/a.yaml": (FOLDER / f"{program}.yaml").read_text(),
    }


def innocent(text: str) -> str:
    """Edits beside the planted one that make nothing: lines above, another constant, another name of a helper."""
    text = "# Copyright of nobody.\n# One more line.\n" + text
    text = text.replace("EPSILON = 1e-6", "SCALE_OF_NOTHING = 3\nEPSILON = 1e-5").replace(
        "def finish(", "def finished("
    )
    return text.replace(" finish(", " finished(")


def planted(plant: Plant) -> tuple[dict[str, str], dict[str, str], str]:
    """(old files, new files, `file:line` of the edit; of a line that went two: the old one, and its place now)."""
    old = files_of(plant.program)
    if plant.file != SPEC:
        plant = replace(plant, old=plant.old.replace("'", '"'), new=plant.new.replace("'", '"'))
    assert old[plant.file].count(plant.old) == 1, (plant.name, old[plant.file].count(plant.old))
    before, _, _ = old[plant.file].partition(plant.old)
    gone = not plant.new
    new = dict(old)
    if gone:
        new[plant.file] = old[plant.file].replace(plant.old, "\0")
        new["model.py"] = innocent(new["model.py"])
        went = new[plant.file].partition("\0")[0].count("\n") + 1
        new[plant.file] = new[plant.file].replace("\0", "")
        return old, new, f"{plant.file}:{before.count(chr(10)) + 1} {plant.file}:{went}"
    marked = old[plant.file].replace(plant.old, "\0")
    new[plant.file] = marked
    new["model.py"] = innocent(new["model.py"])
    right = f"{plant.file}:{new[plant.file].partition(chr(0))[0].count(chr(10)) + 1}"
    new[plant.file] = new[plant.file].replace("\0", plant.new)
    return old, new, right


def repository(folder: Path, old: dict[str, str], new: dict[str, str]) -> None:
    """A repository whose only commit has the old files, and whose work tree has the new ones."""

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    write({**old, "pyproject.toml": ""})
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *SETTINGS, *words], cwd=folder, check=True, capture_output=True)
    write(new)


def every(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, each with what comes from it behind it."""
    return [each for f in findings for each in (f, *every(f.follows))]


def sides(base: str) -> list[Made]:
    """The program of the current repository as its commit has it, and as it is now, compiled.

    base: the folder that has the commit's files.
    """
    made: list[Made] = []
    for at in (base, ""):
        path = Path(at or ".") / SPEC
        spec = specs.read(path.read_bytes(), SPEC)
        assert not spec.errors, spec.errors
        (one,) = spec_programs.compiled(spec.programs, "", at)
        assert isinstance(one, Made), one
        assert one.record is not None, one.problem
        made.append(one)
    return made


def outcome(given: tuple[Plant, bool, Path | None]) -> Outcome:
    """One plant, tried. given: with it, whether by hunks too, and the folder for what is compiled."""
    plant, blame, keep = given
    start, was = time.perf_counter(), Path.cwd()
    old, new, right = planted(plant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "repository"
        folder.mkdir()
        repository(folder, old, new)
        os.chdir(folder)
        try:
            found, texts = told(plant, folder, keep)
            hunk, notes = "", ""
            if found and blame:
                wanted = replace(found[0], severity="deny")
                report = blamed(Report("", (wanted,)), "HEAD", "", MOST_COMPILES)
                hunk = line(report.findings[0].hunks[0]) if report.findings[0].hunks else ""
                notes = "; ".join(report.notes).removeprefix("blame: ")
        finally:
            os.chdir(was)
    stated = next((line(f.cause) for f in found if f.cause), "")
    seconds = time.perf_counter() - start
    return Outcome(plant, tuple(dict.fromkeys(f.question for f in found)), stated, texts, hunk, right, notes, seconds)


def kept(plant: Plant, base: str, keep: Path | None) -> list[Made]:
    """As `sides`, from a file of an earlier run where there is one."""
    file = keep / f"{plant.program} {plant.name}.pickle" if keep is not None else None
    if file is not None and file.exists():
        first, second = pickle.loads(file.read_bytes())
        return [replace(first, asked=replace(first.asked, folder=base)), second]
    made = sides(base)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(made))
    return made


def told(plant: Plant, folder: Path, keep: Path | None) -> tuple[list[Finding], str]:
    """The findings of a plant, each with its cause by both sources; and the line that both texts name."""
    with states.work_tree_of("HEAD") as base:
        # a line is looked for in the files of both trees
        first, second = kept(plant, base, keep)
        between = spec_programs.between(first, second, place=f"{SPEC}:2")
    (entry,) = specs.read((folder / SPEC).read_bytes(), SPEC).programs
    placed = spec_programs.placed(between, entry, SPEC, SPEC)
    one, other = (text_rows(each.text) for each in (first, second))
    texts = every(caused(between, changed(one.rows, other.rows), other.places))
    wanted = [f for f in every(placed) if f.question in plant.makes]
    return wanted, next((line(f.cause) for f in texts if f.question in plant.makes and f.cause), "")


def line(said: str) -> str:
    """`file:line` of what a finding names, "" where it names none."""
    place = said.partition(": ")[0]
    return place if place.rpartition(":")[2].isdigit() else ""


def moved() -> list[str]:
    """Programs of which only lines moved, with what is denied or warned of; none is right."""
    wrong, was = [], Path.cwd()
    for program in sorted({p.program for p in PLANTS}):
        old = files_of(program)
        new = {**old, "model.py": "# One more line.\n\n" + old["model.py"]}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "repository"
            folder.mkdir()
            repository(folder, old, new)
            os.chdir(folder)
            try:
                with states.work_tree_of("HEAD") as base:
                    wrong += [f"{program}: {f.question} {f.subject}" for f in spec_programs.between(*sides(base))]
            finally:
                os.chdir(was)
    return wrong


def main(arguments: list[str]) -> int:
    """Prints a row for each plant, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="plants or programs whose names have this in them")
    parser.add_argument("--unseen", action="store_true", help="the plants that the rules were not made on")
    parser.add_argument("--blame", action="store_true", help="also by hunks, which compiles each several times")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for what was compiled, which a second run takes from it")
    given = parser.parse_args(arguments)
    keep = given.keep.resolve() if given.keep else None
    plants = [p for p in (UNSEEN if given.unseen else PLANTS) if given.only in f"{p.program}: {p.name}"]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = []
        for each in pool.map(outcome, [(p, given.blame, keep) for p in plants]):
            found.append(each)
            print(row(each), flush=True)
    named = {"the sources": [o.stated for o in found], "the texts alone": [o.texts for o in found]}
    if given.blame:
        named["the hunks"] = [o.hunk for o in found]
    best = 0
    for name, said in named.items():
        right = sum(bool(place) and place in o.right.split() for place, o in zip(said, found, strict=True))
        none = sum(not place for place in said)
        best = max(best, right) if name != "the texts alone" else best
        rest = f"nothing said in {none}, another in {len(found) - right - none}"
        print(f"{name}: the planted line first in {right} of {len(found)}, {rest}")
    if given.only or given.unseen:
        return 0
    wrong = moved()
    print(f"only moved by lines: {len(wrong)} findings" + "".join(f"\n  {each}" for each in wrong))
    return int(bool(wrong) or 10 * best < 9 * len(found))


def row(each: Outcome) -> str:
    """A row of the table."""

    def mark(place: str) -> str:
        return "right" if place and place in each.right.split() else place or "none"

    cells = [each.plant.program, each.plant.name, each.right, ", ".join(each.found) or "NONE"]
    cells += [mark(each.stated), mark(each.texts), mark(each.hunk), each.compiled, f"{each.seconds:.0f} s"]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
