"""The pages of the site that are made when it is built: the `explain` pages, the commands, the public names, schemas.

MkDocs calls the `on_..` functions (mkdocs.yml, `hooks`). Whatever is generated comes from the package as it is, so that
no page says something else than the command does, and nothing of it is committed.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import posixpath
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]

ROOT_PAGES: Final = ("BUGS-FOUND.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md")
"""Pages of the repository's root that are pages of the site."""

SECTIONS: Final = {
    "Why it matters": "Why it matters",
    "Incident": "It happened",
    "Refuted by": "Refuted by",
    "Refuted": "Refuted, for example",
    "Proved": "Proved, for example",
    "Example": "Example",
    "Figures": "Figures",
    "Fix": "Fix",
    "Limits": "Limits",
    "Source": "Source",
}
"""What a line of an `explain` page starts with, and the heading that it gets."""

_LINKED: Final = ("properties", "properties of kernels")
"""Kinds of page that other pages link to where they name one."""

_LABEL: Final = re.compile(rf"({'|'.join(SECTIONS)}): *(.*)")
_NO_CODE: Final = re.compile(r"(`[^`]*`|https?://[^\s),;`]+)")


def markdown(text: str) -> str:
    """An `explain` page as Markdown: its labels are headings, what is indented or in columns is code.

    >>> print(markdown("Says so.\\n\\nWhy it matters: a*b costs.\\n    layoutproof ask even X"))
    Says so.
    <BLANKLINE>
    ## Why it matters
    <BLANKLINE>
    A\\*b costs.
    <BLANKLINE>
    ```text
    layoutproof ask even X
    ```
    """
    parts: list[str] = []
    for kind, lines in _blocks(text.splitlines()):
        if kind == "code":
            parts.append("```text\n" + "\n".join(lines) + "\n```")
        elif kind == "heading":
            parts.append(f"## {lines[0]}")
        else:
            parts.append("\n".join(map(escaped, lines)))
    return "\n\n".join(parts)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """(code, heading or text; its lines), in order. A list and what follows its items is text."""
    kept: list[str] = []
    kind = "text"

    def closed() -> Iterator[tuple[str, list[str]]]:
        nonlocal kept
        while kept and not kept[-1].strip():
            kept.pop()
        if kept:
            margin = min(len(line) - len(line.lstrip()) for line in kept if line.strip()) if kind == "code" else 0
            yield kind, [line[margin:] for line in kept]
        kept = []

    for line in lines:
        label = _LABEL.match(line)
        this = "code" if re.match(r" {4}|\S+ {2,}\S|\$ ", line) else "text"
        if label is not None:
            yield from closed()
            yield "heading", [SECTIONS[label[1]]]
            kind, kept = "text", [label[2][0].upper() + label[2][1:]] if label[2] else []
        elif not line.strip():
            if kind == "code":
                kept.append("")
            else:
                yield from closed()
        else:
            if this != kind:
                yield from closed()
                kind = this
            kept.append(line)
    yield from closed()


def escaped(line: str) -> str:
    """A line without accidental Markdown; what stands between backticks stays, and addresses become links."""

    def one(part: str) -> str:
        if part.startswith("`"):
            return part
        if part.startswith("http"):
            address = part.rstrip(".")
            return f"<{address}>" + part[len(address) :]
        return re.sub(r"([*_\[\]])", r"\\\1", part.replace("<", "&lt;").replace(">", "&gt;"))

    return "".join(map(one, _NO_CODE.split(line)))


def anchor(name: str) -> str:
    """A name as the name of a file."""
    return re.sub(r"\W+", "_", name)


def page_of(kind: str, name: str) -> str:
    """Where the site has an `explain` page."""
    return f"explain/{anchor(kind)}/{anchor(name)}/index.html"


@cache
def explained() -> dict[str, dict[str, str]]:
    """The `explain` pages, by kind and name, as the command shows them; kinds without a page are left out."""
    from layoutproof.cli.commands.explain import _pages

    return {kind: pages for kind, pages in _pages().items() if pages}


def said(command: str) -> str:
    """What a command line `layoutproof ..` prints, in this process."""
    from layoutproof.cli.main import run

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run(shlex.split(command)[1:])
    return out.getvalue().rstrip("\n")


def examples(text: str) -> dict[str, str]:
    """The command below `Refuted:` and below `Proved:` of an `explain` page, as a user would paste it.

    >>> examples("Says.\\nRefuted:\\n    layoutproof ask even A\\nProved:\\n    layoutproof ask even B\\nFix: none.")
    {'Refuted': 'layoutproof ask even A', 'Proved': 'layoutproof ask even B'}
    """
    found = re.findall(r"^(Refuted|Proved):\n((?: {4}.*(?:\n|\Z))+)", text, re.MULTILINE)
    return {label: re.sub(r"^ {4}", "", block, flags=re.MULTILINE).rstrip("\n") for label, block in found}


def pictured(text: str) -> str:
    """A page with the picture that each of its commands `.. --svg FILE` writes, below the command."""

    def drawn_by(block: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "picture.svg"
            said(f"{block[1]} --svg {picture}")
            return f"{block[0]}\n\n{_drawing(picture.read_text('utf-8'))}"

    return re.sub(r"^```sh\n(layoutproof .*) --svg \S+\n```$", drawn_by, text, flags=re.MULTILINE)


def _drawing(picture: str) -> str:
    """A picture as a block of a page; an empty line would end the block."""
    return f'<div class="output">{re.sub(chr(10) + "+", chr(10), picture)}</div>'


def explained_page(kind: str, name: str, text: str) -> str:
    """The page of one name. Its examples are run, and what they print stands below them."""
    page = cross_linked(markdown(text), name)
    if f"\n## {name}\n" in (ROOT / "docs" / "howto" / "bodies.md").read_text("utf-8"):
        page += f"\n\n## Refuted and proved, for example\n\n[Bodies, wrong and right](../../howto/bodies.md#{name})"
    for command in examples(text).values():
        block = f"```text\n{command}\n```"
        page = page.replace(block, f"```console\n$ {command}\n{said(command)}\n```")
    return f"# {name}\n\n<p class='kind'>{kind} · <code>layoutproof explain {name}</code></p>\n\n{page}\n"


def cross_linked(page: str, name: str) -> str:
    """A page with links where it names another one: a question in backticks, BUGS-FOUND.md, a page of docs/."""
    where = {n: f"../{anchor(kind)}/{anchor(n)}.md" for kind in _LINKED for n in explained()[kind] if n != name}

    def linked(part: str) -> str:
        part = re.sub(r"`(\w+)`", lambda m: f"[{m[0]}]({where[m[1]]})" if m[1] in where else m[0], part)
        part = part.replace("BUGS-FOUND.md", "[Bugs found](../../BUGS-FOUND.md)")
        return re.sub(
            r"(?<![`\w/])docs/(\w+)\.md", r"[\1](../../\1.md)", part.replace(r"docs/public\_", "docs/public_")
        )

    return _without_code(page, linked)


def explained_pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of every `explain` page, and of the page that lists them."""
    lines = [
        "# Explained",
        "",
        "What the tool asks, reads and reports, a page each: what it says, why it matters, what refutes it, and how to",
        "fix that. The same pages are in the terminal: `layoutproof explain NAME`.",
        "",
    ]
    for kind, pages in explained().items():
        lines += [f"## {kind[0].upper()}{kind[1:]}", "", "| name | says |", "|---|---|"]
        for name, text in pages.items():
            path = f"{anchor(kind)}/{anchor(name)}.md"
            first = escaped(text.partition("\n")[0]).replace("|", "\\|")
            lines.append(f"| [`{name}`]({path}) | {first} |")
            yield f"explain/{path}", explained_page(kind, name, text)
        lines.append("")
    yield "explain/index.md", "\n".join(lines)


def drawn(graph: str) -> str:
    """A Mermaid graph `a --> b` as SVG, drawn here so that no page needs a script; who is imported stands below.

    >>> drawn("graph TD\\n  a --> b\\n").count("<rect")
    2
    """
    edges = re.findall(r"(\w+) --> (\w+)", graph)
    below: dict[str, list[str]] = {name: [] for edge in edges for name in edge}
    for above, under in edges:
        below[above].append(under)

    @cache
    def height(name: str) -> int:
        return 1 + max(map(height, below[name]), default=-1)

    rows = [[name for name in sorted(below) if height(name) == h] for h in range(max(map(height, below)) + 1)]
    at: dict[str, float] = {}
    for row in rows:
        centre = {n: sum(at[m] for m in below[n]) / len(below[n]) if below[n] else 450 for n in row}
        row.sort(key=lambda n: (centre[n], n))
        at |= {name: 900 * (k + 1) / (len(row) + 1) for k, name in enumerate(row)}
    down = {name: 70 * (len(rows) - 1 - h) + 24 for h, row in enumerate(rows) for name in row}
    lines = [
        f'<path d="M{at[a]:.0f} {down[a] + 13} C{at[a]:.0f} {down[a] + 40} {at[b]:.0f} {down[b] - 40} '
        f'{at[b]:.0f} {down[b] - 13}"/>'
        for a, b in edges
    ]
    boxes = [
        f'<rect x="{at[n] - 46:.0f}" y="{down[n] - 13}" width="92" height="26" rx="4"/>'
        f'<text x="{at[n]:.0f}" y="{down[n] + 4}">{n}</text>'
        for n in below
    ]
    box = f'viewBox="0 0 900 {70 * len(rows)}" role="img" aria-label="imports of packages, from top to bottom"'
    return f'<svg class="graph" {box}>{"".join([*lines, *boxes])}</svg>'


def notebook_pages() -> Iterator[tuple[str, str]]:
    """Each notebook as it lies in the repository, with the outputs that were kept."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        yield f"notebooks/{path.stem}.md", "\n\n".join(_cell(cell) for cell in cells) + "\n"


def _cell(cell: Mapping[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source
    parts = [f"```python\n{source}\n```"] if source.strip() else []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        shown = {kind: "".join(text) for kind, text in data.items() if isinstance(text, str | list)}
        picture = shown.get("image/svg+xml") or shown.get("text/html")
        said = "".join(output.get("text", ())) or shown.get("text/plain", "")
        if picture:
            parts.append(_drawing(picture))
        elif said:
            parts.append(f"```text\n{said.rstrip()}\n```")
    return "\n\n".join(parts)


def public_names() -> list[str]:
    """The names of `lp.*`, in the order of docs/public.md."""
    import layoutproof

    table = (ROOT / "docs" / "public.md").read_text("utf-8").partition("## Names of")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    names = [name for row in rows for name in row]
    return names + sorted(set(layoutproof.__all__) - set(names))


def python_pages() -> Iterator[tuple[str, str]]:
    """A page for each public name that has a docstring."""
    import layoutproof

    lines = ["# Python", "", "`import layoutproof as lp`. [What is public](../public.md) stays."]
    lines += ["", "| name | is |", "|---|---|"]
    for name in public_names():
        thing: Any = getattr(layoutproof, name)
        if name == "__version__":
            continue
        where = thing.__name__ if name == "algebra" else f"{thing.__module__}.{thing.__qualname__}"
        first = escaped((thing.__doc__ or "").strip().partition("\n")[0]).replace("|", "\\|")
        lines.append(f"| [`lp.{name}`]({name}.md) | {first} |")
        if name == "algebra":
            body = _algebra()
        else:
            body = f"::: {where}\n    options:\n      heading: lp.{name}\n      heading_level: 1\n"
        yield f"python/{name}.md", body
    yield "python/index.md", "\n".join(lines) + "\n"


def _algebra() -> str:
    """Every operation on Axe and CuTe layouts."""
    from layoutproof import algebra

    parts = ["# lp.algebra", "", "An example of each: [Algebra](../algebra.md).", ""]
    for family in ("axe", "cute"):
        module = getattr(algebra, family)
        parts += [f"## lp.algebra.{family}", ""]
        for name in module.__all__:
            thing = getattr(module, name)
            if hasattr(thing, "__qualname__"):  # not an alias of a type
                parts.append(f"::: {thing.__module__}.{thing.__qualname__}\n    options:\n      heading_level: 3\n")
    return "\n".join(parts)


def command_pages() -> Iterator[tuple[str, str]]:
    """A page for each command: its help, its options, its JSON Schema."""
    import click

    from layoutproof.cli.main import cli

    context = click.Context(cli, info_name="layoutproof")
    lines = ["# Commands", "", "`layoutproof COMMAND`, or `python -m layoutproof COMMAND`."]
    lines += ["", "| command | does |", "|---|---|"]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        lines.append(f"| [`{name}`]({name}.md) | {escaped(command.get_short_help_str(200))} |")
        yield f"commands/{name}.md", command_page(command, inner)
    codes = "0 proved, 1 refuted or denied, 2 bad input, 3 unknown, 130 interrupted"
    lines += ["", f"Exit codes: {codes}; [verdicts](../concepts/verdicts.md)."]
    yield "commands/index.md", "\n".join(lines) + "\n"


def command_page(command: Any, context: Any) -> str:
    """What `layoutproof COMMAND --help` says, as a page."""
    import click

    name = context.info_name
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            flags, text = record
            rows.append(f"| `{flags}` | {escaped(text).replace('|', chr(92) + '|')} |".replace("\n", " "))
    help_text = (command.help or "").replace("\f", "")
    epilog = (command.epilog or "").replace("\f", "")
    schema = f"[`{name}.schema.json`](../schemas/answers/{name}.schema.json)"
    return "\n".join([
        f"# layoutproof {name}",
        "",
        f"```text\n{usage}\n```",
        "",
        markdown(_paragraphs(help_text)),
        "",
        markdown(_paragraphs(epilog)),
        "",
        "## Options",
        "",
        "| option | does |",
        "|---|---|",
        *rows,
        "",
        f"What it prints with `--json`: {schema}, by [these rules](../json.md).",
        "",
    ])  # fmt: skip


def _paragraphs(text: str) -> str:
    """Help text for `markdown`: paragraphs that click must not wrap are indented, so they are code."""
    out = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            out.append("\n".join("    " + line for line in paragraph.splitlines()[1:]))
        else:
            out.append(paragraph)
    return "\n\n".join(out)


def schemas() -> dict[str, dict[str, Any]]:
    """Path below schemas/ -> JSON Schema: of spec files, of search files, of what each command prints with `--json`."""
    import click

    from layoutproof.cli.documents import json_schema
    from layoutproof.cli.main import cli
    from layoutproof.searching.search_model import json_schema as of_searches
    from layoutproof.specs.spec_model import json_schema as of_specs

    names = cli.list_commands(click.Context(cli))
    return {"spec": of_specs(), "search": of_searches(), **{f"answers/{name}": json_schema(name) for name in names}}


@cache
def tracked() -> frozenset[str]:
    """The files of the repository, relative to its root; without git, those that lie there."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return frozenset(name for name in done.stdout.split("\0") if name)
    return frozenset(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*")
        if not str(path.relative_to(ROOT)).startswith((".venv", "build"))
    )


def relinked(text: str, page: str, repository: str) -> str:
    """A page's links for the site. `page` is its path from the repository's root.

    A link to another page leads there. One to a file that is no page leads to the repository, where its address is
    known, and is plain text where it is not. One to nothing stays, so that the build fails on it.
    """

    def target(match: re.Match[str]) -> str:
        shown, address = match[1], match[2]
        if re.match(r"[a-z]+:|#", address):
            return match[0]
        path, mark, fragment = address.partition("#")
        whole = _normal((Path(page).parent / path).as_posix())
        here = _of_site(page)
        if (there := _of_site(whole)) is not None:
            return f"[{shown}]({_relative(there, here or page)}{mark}{fragment})"
        if whole not in tracked() and not any(name.startswith(f"{whole}/") for name in tracked()):
            return match[0]
        return f"[{shown}]({repository.rstrip('/')}/blob/main/{whole})" if repository else shown

    return re.sub(r"(?<!!)\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)?)\]\(([^()\s]+)\)", target, text)


def without_references(text: str) -> str:
    """A text in which `a[1] [2:3]` is no link to a reference.

    >>> print(without_references("S[2] [6:10], `S[2] [6:10]`, [a](b)"))
    S[2] \\[6:10], `S[2] [6:10]`, [a](b)
    """
    return re.sub(r"`[^`]*`|(\] ?)\[", lambda match: f"{match[1]}\\[" if match[1] else match[0], text)


def _of_site(path: str) -> str | None:
    """A path from the repository's root -> the page or file of the site that it is."""
    if path in ROOT_PAGES:
        return path
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _relative(there: str, here: str) -> str:
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


def _without_code(text: str, change: Any) -> str:
    """A text with what stands outside of fenced blocks changed."""
    parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def generated() -> dict[str, str]:
    """Every generated file of the site but the root's pages: path -> text."""
    pages = {
        path: text for make in (explained_pages, python_pages, command_pages, notebook_pages) for path, text in make()
    }
    files = {f"schemas/{name}.schema.json": json.dumps(schema, indent=2) + "\n" for name, schema in schemas().items()}
    return pages | files


def on_config(config: Any) -> Any:
    """`+ NAME` in the navigation becomes the generated pages of that name."""
    config.nav = [entry for entry in map(_expanded, config.nav) if entry != {"Notebooks": []}]
    return config


def _expanded(entry: Any) -> Any:
    if isinstance(entry, Mapping):
        ((title, value),) = entry.items()
        if isinstance(value, str) and value.startswith("+ "):
            return {title: _nav(value[2:])}
        return {title: [_expanded(part) for part in value] if isinstance(value, list) else value}
    return entry


def _nav(name: str) -> list[Any]:
    import click

    if name == "explain":
        kinds = [
            {f"{kind[0].upper()}{kind[1:]}": [{n: f"explain/{anchor(kind)}/{anchor(n)}.md"} for n in pages]}
            for kind, pages in explained().items()
        ]
        return ["explain/index.md", *kinds]
    if name == "notebooks":
        return [{_title(text): path} for path, text in notebook_pages()]
    if name == "python":
        return ["python/index.md", *({n: f"python/{n}.md"} for n in public_names() if n != "__version__")]
    from layoutproof.cli.main import cli

    return ["commands/index.md", *({n: f"commands/{n}.md"} for n in cli.list_commands(click.Context(cli)))]


def _title(text: str) -> str:
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))


def on_files(files: Any, config: Any) -> Any:
    """The generated files are files of the site."""
    from mkdocs.structure.files import File

    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    for name in ROOT_PAGES:
        if (ROOT / name).exists():
            files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Links as the site has them."""
    path = page.file.src_uri
    if path == "index.md":
        page.meta["hide"] = ["navigation"]
    if path == "gallery.md":
        text = pictured(text)
    text = re.sub(
        r"^```mermaid\n(graph TD\n.*?)^```$", lambda found: drawn(found[1]), text, flags=re.DOTALL | re.MULTILINE
    )
    source = path if path in ROOT_PAGES else f"docs/{path}"
    return _without_code(text, lambda part: relinked(without_references(part), source, config.repo_url or ""))
