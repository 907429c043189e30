"""`docs/known_bugs.md`: the known bugs of JAX, XLA and libtpu. `python -m tests.known_bugs.page` prints the page."""

from __future__ import annotations

from layoutproof.known_bugs import in_kernels, in_programs
from layoutproof.known_bugs.bug import KnownBug
from layoutproof.known_bugs.bugs import BUGS

_WHERE = {
    "kernel": ("Pallas kernels", "`kernels` says it, under `known_bugs` and `known_jax_bugs`"),
    "program": ("Compiled programs", "`compile` says it below the record"),
    "refusal": ("Refusals", "`compile` says it beside the compiler's words"),
}


def page() -> str:
    """The page."""
    lines = [
        "# Known bugs of JAX and its compilers",
        "",
        f"{len(BUGS)} bugs that a right kernel or program can meet. One is said only where its pattern is found and",
        "the version has it: a warning between the first and the last version in which it was seen, an info in later",
        "ones of which nobody knows, nothing before, and nothing from its fix on. None turns a right kernel red.",
        "Versions of kernels are those of `--target` and `--compiler`, and of the installed JAX; of programs those of",
        "the compiler.",
        "",
        "`python -m tests.known_bugs.page` prints this page; `tests/known_bugs` holds it against the code, and has for",
        "each bug a text that meets it and one that does not. `python benchmarks/known_bugs.py` runs those that a CPU",
        "shows. To add one: an entry in `layoutproof/known_bugs/bugs.py`, a pattern beside it, and the two texts.",
    ]
    for subject, (title, said) in _WHERE.items():
        lines += ["", f"## {title}", "", f"{said[0].upper()}{said[1:]}."]
        for bug in BUGS:
            if bug.subject == subject:
                lines += ["", *_entry(bug)]
    return "\n".join(lines) + "\n"


def _entry(bug: KnownBug) -> list[str]:
    where = f" on the {bug.platform.upper()}" if bug.platform else ""
    link = f"<{bug.link}>" if bug.link.startswith("http") else bug.link.replace("BUGS-FOUND.md", "`BUGS-FOUND.md`")
    return [
        f"### {bug.name}",
        "",
        f"{bug.title[0].upper()}{bug.title[1:]}{where}.",
        "",
        f"- Effect: {bug.effect}.",
        f"- Versions: {bug.versions()}. Seen by: {bug.evidence}.",
        f"- Pattern: {_pattern(bug)}",
        f"- Way out: {bug.way_out}.",
        f"- Link: {link}",
    ]


def _pattern(bug: KnownBug) -> str:
    if bug.subject == "refusal":
        return f"the words `{bug.pattern}`."
    found = getattr(in_kernels if bug.subject == "kernel" else in_programs, bug.pattern)
    text = (found.__doc__ or "").strip()
    return text[0].lower() + text[1:]


if __name__ == "__main__":
    print(page(), end="")
