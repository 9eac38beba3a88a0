"""``make docs``: READMEs and a reference from docstrings as pages in build/docs/site; a link that leads nowhere is an error.

The guide to models, passes and reports is there as a notebook, too (build/docs/site/guide.ipynb), with what its code prints.

The reference is read from an unpacked wheel, which has the package's modules where imports look for them; nothing is imported
but the registries of ops and passes, for their names.
"""

from __future__ import annotations

import pkgutil
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import jupytext
import nbclient

import relaxir
from relaxir import debugging, extend, weights
from relaxir.dialect import ops
from relaxir.dialect.passes import manager
from relaxir.lowering.passes import register_passes

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "build/docs/source"
#: What pages link to beside each other.
FILES = ("LICENSE", "pyproject.toml")
#: The guide that is a notebook, too: each block of its code works on its own.
GUIDE = ROOT / "python/README.md"


def main() -> int:
    """Writes the pages' sources and has mkdocs build them; its exit code."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for path in pages():
        copy(path)
    reference = SOURCE / "reference"
    reference.mkdir(parents=True)
    for name, text in reference_pages().items():
        (reference / f"{name}.md").write_text(text)
    # With --quiet it does not count warnings either, which --strict makes errors of.
    command = ["mkdocs", "build", "--strict", "--config-file", str(ROOT / ".ci/docs/mkdocs.yml")]
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        notebook(ROOT / "build/docs/site/guide.ipynb")
    print("built build/docs/site/index.html" if done.returncode == 0 else done.stderr)
    return done.returncode


def notebook(path: Path) -> None:
    """Writes the guide as a notebook that has been run, in a folder of its own; a cell that raises is an error."""
    guide = jupytext.read(GUIDE)
    guide.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(guide, timeout=600, resources={"metadata": {"path": folder}}).execute()
    jupytext.write(guide, path)


def pages() -> list[Path]:
    """The texts of the repository's root and its folders' READMEs."""
    folders = [ROOT / name for name in ("dialect", "lowering", "python", "test", "tools")]
    return [*ROOT.glob("*.md"), *(p for folder in folders for p in folder.rglob("README.md")), *(ROOT / name for name in FILES)]


def copy(path: Path) -> None:
    """Puts a file at its place among the sources, so that links between files stay right."""
    place = SOURCE / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)


def reference_pages() -> dict[str, str]:
    """Pages of the reference by name, in Markdown; ``:::`` stands for what docstrings say."""
    first = homes(relaxir)
    return {
        "relaxir": page("relaxir", first),
        "weights": page("relaxir.weights", homes(weights)),
        "debugging": page("relaxir.debugging", homes(debugging)),
        "extend": page("relaxir.extend", [name for name in homes(extend) if name not in first]),
        "ops": page("Ops", [f"{ops.__name__}.{m.name}" for m in pkgutil.iter_modules(ops.__path__)]),
        "passes": page("Passes", passes()),
    }


def homes(module: ModuleType) -> list[str]:
    """Where what a module exports is defined; names of other packages, and what has no text of its own, have no place here."""
    found = [getattr(module, name) for name in module.__all__]
    own = [o for o in found if getattr(o, "__module__", "").startswith("relaxir") and hasattr(o, "__qualname__")]
    return [f"{o.__module__}.{o.__qualname__}" for o in own]


def passes() -> list[str]:
    """The modules of all passes, relax-to-relax ones first."""
    register_passes()
    modules = sorted({cls.__module__ for cls in manager.registered().values()})
    return sorted(modules, key=lambda name: not name.startswith("relaxir.dialect."))


def page(title: str, names: list[str]) -> str:
    """A page of objects and modules, one after the other."""
    return "\n".join([f"# {title}", "", *(f"::: {name}\n" for name in names)])


if __name__ == "__main__":
    sys.exit(main())
