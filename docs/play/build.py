"""Builds the page that runs in a browser into a folder of its own: `python docs/play/build.py OUT`.

The folder has everything: the page, Python for browsers (Pyodide, from npm, pinned by its hash and kept in `--cache`)
and the package of this checkout. Any web server can serve it; `python -m http.server -d OUT` does. `--time` opens it in
Chromium and prints how long it takes to load and to answer (needs the extra `dev` and chromium).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "layoutproof"
PYODIDE = "314.0.7"
INTEGRITY = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
"""SHA-512 of the npm package, as the registry states it."""
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PAGE = ("index.html", "style.css", "page.js", "worker.js", "answers.py")
CACHE = Path.home() / ".cache" / "layoutproof"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pyodide(cache: Path) -> Path:
    """The pinned npm package, fetched by npm where the cache has it not. SystemExit where it is another one."""
    archive = cache / f"pyodide-{PYODIDE}.tgz"
    if not archive.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("npm is not installed; it fetches Pyodide")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            done = subprocess.run(
                [npm, "pack", "--silent", f"pyodide@{PYODIDE}"], cwd=folder, capture_output=True, text=True, check=False
            )
            found = list(Path(folder).glob("*.tgz"))
            if done.returncode or not found:
                raise SystemExit(f"npm did not give pyodide {PYODIDE}: {done.stderr.strip()[-500:]}")
            found[0].replace(archive)
    if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != INTEGRITY:
        archive.unlink()
        raise SystemExit(f"the npm package of pyodide {PYODIDE} is not the one that is pinned")
    return archive


def package(path: Path) -> None:
    """The Python files of the package, as its wheel has them; equal files make an equal archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(PACKAGE.rglob("*.py")):
            name = zipfile.ZipInfo(source.relative_to(PACKAGE.parent).as_posix(), _EPOCH)
            archive.writestr(name, source.read_bytes(), zipfile.ZIP_DEFLATED)


def build(out: Path, cache: Path = CACHE) -> None:
    """Writes the page into `out`, which may be there."""
    archive = pyodide(cache)
    out.mkdir(parents=True, exist_ok=True)
    for name in PAGE:
        shutil.copyfile(HERE / name, out / name)
    with tarfile.open(archive) as files:
        for name in RUNTIME:
            member = files.extractfile(f"package/{name}")
            if member is None:
                raise SystemExit(f"the npm package has no {name}")
            (out / name).write_bytes(member.read())
    package(out / "layoutproof.zip")
    names = [*PAGE, *RUNTIME, "layoutproof.zip"]
    digest = hashlib.sha256(b"".join((out / name).read_bytes() for name in names)).hexdigest()[:16]
    worker = (HERE / "sw.js").read_text("utf-8").replace("@BUILD@", digest).replace("@FILES@", json.dumps(names))
    (out / "sw.js").write_text(worker, "utf-8")


def main() -> None:
    """Build, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--time", action="store_true", help="open it in Chromium and print how long it takes")
    options = parser.parse_args()
    build(options.out, options.cache)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{options.out}: {size / (1 << 20):.1f} MiB in {sum(1 for _ in options.out.iterdir())} files")
    if options.time:
        sys.path.insert(0, str(HERE.parents[1]))
        from tests.play.browser import timings

        print(timings(options.out))


if __name__ == "__main__":
    main()
