"""Compiled code on disk: found again as it was, by other processes too; damage, lack of room and of rights only cost time."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import relaxir as rx
from relaxir import compiler
from relaxir.dialect.errors import RelaxWarning
from relaxir.dialect.functions import functions, name_of
from relaxir.lowering.cpu import known_kernels, llvm_worker
from relaxir.object_cache import CompiledModule, ObjectCache, key_of
from relaxir.runtime import environment
from relaxir.trust import untrusted_folder
from support.stage_modules import MODULES

ENTRY = CompiledModule({"version": 1, "shapes": [[1, "n"]], "text": "ä\ud800"}, "module {}", bytes(range(256)))
LIMIT = 10_000


@pytest.fixture
def directory(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """The pipelines of the compilations that took place."""
    seen: list[str] = []
    compiled = compiler._compiled
    monkeypatch.setattr(
        compiler, "_compiled", lambda m, t, pipeline, *rest: (seen.append(pipeline), compiled(m, t, pipeline, *rest))[1]
    )
    return seen


def module(columns: int = 4) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", columns), "f32")
        b.output(y=b.relu(b.matmul(x, b.permute_dims(b.weight("w", (3, columns), "f32"), axes=[1, 0]))))
    return b.build()


def files(directory: Path, kind: str = "objects") -> list[Path]:
    return [p for p in (directory / kind).rglob("*") if p.is_file()]


def test_a_hit_is_the_executable_that_was_compiled(directory, compilations):
    first, second, third = rx.compile(module()), rx.compile(module()), rx.compile(module(), cache=False)
    assert len(compilations) == 2
    assert len(files(directory)) == 1
    assert first.manifest.data == second.manifest.data == third.manifest.data
    assert first.module_text == second.module_text == third.module_text
    assert str(first.report) == str(second.report) == str(third.report)
    assert first.header == second.header
    assert first._object_code == second._object_code
    x, w = np.ones((2, 4), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(second.bind(second.prepare({"w": w}))(x), x @ w.T)


@pytest.mark.parametrize("other", [lambda: rx.compile(module(8)), lambda: rx.compile(module().run("cse"))])
def test_other_text_is_compiled(directory, compilations, other):
    rx.compile(module())
    before = len(compilations)
    other()
    assert len(compilations) == before + (other().manifest.entries["main"].inputs[0].shape[1] == 8)


def test_a_pipeline_of_ones_own_is_not_kept(directory, compilations):
    for _ in range(2):
        rx.compile(module(), pipeline="relax-canonicalize")
    assert len(compilations) == 2
    assert not directory.exists()


def test_what_passes_told_before_belongs_to_the_key(directory, compilations):
    told = module().run("relax-lift-transform-params")
    untold = rx.Module.parse(str(told))
    assert str(rx.compile(told).report) == str(rx.compile(told, cache=False).report)
    assert str(rx.compile(untold).report) == str(rx.compile(untold, cache=False).report)


def test_a_failure_is_not_kept(directory):
    b = rx.Builder()
    with b.function("main"):
        b.output(b.relu(b.input("x", (2,), "f32")))
    text = str(b.build()).replace("@main", '@"a b"').replace("}\n}", "}\n func.func @a_b() { return }\n}")
    for _ in range(2):
        with pytest.raises(rx.RelaxError, match="differ in C"):
            rx.compile(rx.Module.parse(text))
    assert not files(directory)


def test_a_damaged_entry_is_replaced(directory, compilations):
    rx.compile(module())
    (path,) = files(directory)
    whole = path.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b"\0" * 40):
        path.write_bytes(damaged)
        before = len(compilations)
        rx.compile(module())
        assert len(compilations) == before + 1
        assert path.read_bytes() == whole


def test_a_directory_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    executable = rx.compile(module())
    assert f"cache: compiled code was not kept in '{tmp_path}/file/cache': Not a directory" in str(executable.report)
    executable.save(tmp_path / "artifact")
    assert "was not kept" in str(rx.load(tmp_path / "artifact").report)


def test_a_read_only_directory_serves_what_it_has(directory, compilations, monkeypatch):
    rx.compile(module())

    def refuse(*args: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert "was not kept" not in str(rx.compile(module()).report)
    assert len(compilations) == 1
    assert "was not kept" in str(rx.compile(module(8)).report)


SOMEONE = 12345


def others_own(folder: Path) -> None:
    os.chown(folder, SOMEONE, -1)


def others_write(folder: Path) -> None:
    folder.chmod(0o777)


def others_write_what_is_theirs(folder: Path) -> None:
    """As in /tmp: others cannot replace what is ours, but what is not there yet they can put there."""
    folder.chmod(0o1777)


def a_group_writes(folder: Path) -> None:
    os.chown(folder, -1, SOMEONE)
    folder.chmod(0o770)


@pytest.fixture
def other_user(monkeypatch) -> Callable[[Path], None]:
    """Gives a folder to another user; only root can, so for others the test's user is another one."""

    def give(folder: Path) -> None:
        if os.geteuid() == 0:
            return others_own(folder)
        monkeypatch.setattr(os, "geteuid", lambda: SOMEONE)

    return give


@pytest.mark.parametrize("spoil", [others_write, others_write_what_is_theirs, "other user"])
@pytest.mark.parametrize("place", ["", "objects", "objects/??"])
def test_a_directory_that_others_can_write_to_is_not_used(directory, compilations, other_user, spoil, place):
    rx.compile(module())
    (kept,) = files(directory)
    before = kept.read_bytes()
    (folder,) = directory.glob(place) if place else (directory,)
    (other_user if spoil == "other user" else spoil)(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        executable = rx.compile(module())
    assert len(compilations) == 2  # not read
    assert (files(directory), kept.read_bytes()) == ([kept], before)  # nor written
    text = f"expected a folder that only this user can write to, got '{folder}', which "
    assert text in str(executable.report)
    assert [text in str(w.message) for w in caught if w.category is RelaxWarning] == [True] * (not place)
    assert all(w.filename == __file__ for w in caught if w.category is RelaxWarning)


@pytest.mark.parametrize("spoil", [others_write, "other user"])
def test_folders_on_the_way_count(tmp_path, monkeypatch, compilations, other_user, spoil):
    """Also on the way that links take."""
    hall, room = tmp_path / "hall", tmp_path / "room"
    hall.mkdir()
    (room / "cache").mkdir(parents=True)
    (hall / "link").symlink_to("../room")
    (tmp_path / "outer").symlink_to("hall/link")
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "outer" / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rx.compile(module())
    (other_user if spoil == "other user" else spoil)(hall)
    with pytest.warns(RelaxWarning, match=r"got '.*/hall', which (others may write to|belongs to user)"):
        rx.compile(module())
    assert len(compilations) == 2


def test_a_folder_of_ours_in_one_for_all_is_used(tmp_path, monkeypatch, compilations):
    """As in /tmp, where only the owner can rename or remove a file."""
    others_write_what_is_theirs(tmp_path)
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache" / "deeper"))
    for _ in range(2):
        rx.compile(module())
    assert len(compilations) == 1
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


def test_groups(tmp_path, monkeypatch):
    """One that a user has alone, as many systems make them, is no other."""
    tmp_path.chmod(0o770)
    for name, members, trusted in (("me", [], True), ("me", ["me"], True), ("me", ["you"], False), ("users", [], False)):
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_gid=tmp_path.stat().st_gid, pw_name="me"))
        monkeypatch.setattr(grp, "getgrgid", lambda gid, n=name, m=members: SimpleNamespace(gr_name=n, gr_mem=m))
        assert (untrusted_folder(str(tmp_path)) is None) == trusted


def test_an_entry_that_others_wrote_is_not_used(directory, compilations, other_user):
    rx.compile(module())
    (kept,) = files(directory)
    for spoil in (lambda path: path.chmod(0o666), lambda path: (path.chmod(0o600), os.link(path, directory / "l"))):
        spoil(kept)
        rx.compile(module())
    assert len(compilations) == 2
    kept.unlink()
    os.mkfifo(kept)
    rx.compile(module())
    assert len(compilations) == 3


def test_entries_come_back(tmp_path):
    cache = ObjectCache(tmp_path, LIMIT)
    assert cache.get(key_of("a")) is None
    cache.put(key_of("a"), ENTRY)
    assert cache.get(key_of("a")) == ENTRY
    assert len({key_of("a", "b"), key_of("ab"), key_of("b", "a"), key_of("ab", ""), key_of()}) == 5


def test_what_was_not_used_for_longest_goes(tmp_path):
    cache = ObjectCache(tmp_path, LIMIT)
    keys = [key_of(str(i)) for i in range(12)]
    entry = CompiledModule({}, "", bytes(900))
    for age, key in enumerate(keys[:10]):
        cache.put(key, entry)
        os.utime(cache._path("objects", key), (1000 + age, 1000 + age))
    assert cache.get(keys[0]) == entry  # now the youngest
    left_behind = tmp_path / "objects" / "00" / "left.behind"
    left_behind.parent.mkdir(exist_ok=True)
    left_behind.write_bytes(bytes(100))
    os.utime(left_behind, (1, 1))
    being_written = left_behind.with_name("being.written")
    being_written.write_bytes(b"")
    cache.put(keys[10], entry)
    cache.put(keys[11], entry)
    assert sum(p.stat().st_size for p in files(tmp_path)) <= LIMIT
    assert not left_behind.exists()
    assert being_written.exists()
    assert [i for i, k in enumerate(keys) if cache.get(k) is None] == [1, 2]


@pytest.fixture
def looks(monkeypatch) -> list[Path]:
    """Grows by a directory each time that a cache looks at all files in it."""
    seen: list[Path] = []
    look = ObjectCache._files
    monkeypatch.setattr(ObjectCache, "_files", lambda cache: (seen.append(cache.directory), look(cache))[1])
    return seen


def test_files_are_looked_at_when_they_may_be_too_many(tmp_path, looks):
    entry = CompiledModule({}, "", bytes(900))
    for i in range(4):
        ObjectCache(tmp_path, LIMIT).put(key_of(str(i)), entry)
        ObjectCache(tmp_path, LIMIT).kernels("x").put(str(i), bytes(900))
    assert len(looks) == 1
    for i in range(4, 8):
        ObjectCache(tmp_path, LIMIT).kernels("x").put(str(i), bytes(900))
    ObjectCache(tmp_path, LIMIT).put(key_of("last"), entry)
    assert len(looks) == 2
    assert sum(p.stat().st_size for kind in ("objects", "kernels") for p in files(tmp_path, kind)) <= LIMIT
    ObjectCache(tmp_path, LIMIT // 2).put(key_of("less"), entry)
    assert len(looks) == 3


def test_who_deletes_files_need_not_tell(tmp_path, looks):
    cache, entry = ObjectCache(tmp_path, LIMIT), CompiledModule({}, "", bytes(900))
    for i in range(6):
        cache.put(key_of(str(i)), entry)
    for path in files(tmp_path):
        path.unlink()
    for i in range(6):
        cache.put(key_of(str(i)), entry)
    assert len(looks) == 2
    assert len(files(tmp_path)) == 6
    (tmp_path / "used").unlink()
    cache.put(key_of("more"), entry)
    assert len(looks) == 3
    assert len(files(tmp_path)) == 7


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path):
    cache = ObjectCache(tmp_path, LIMIT)
    cache.put(key_of("small"), ENTRY)
    cache.put(key_of("large"), CompiledModule({}, "", bytes(LIMIT)))
    assert cache.get(key_of("large")) is None
    assert cache.get(key_of("small")) == ENTRY


def two_products(first: int) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x = b.matmul(b.input("x", (3, first), "f32"), b.input("y", (first, 16), "f32"))
        b.output(b.matmul(x, b.input("z", (16, 24), "f32")))
    return b.build()


def test_a_kernel_of_another_module_is_not_compiled_again(directory, monkeypatch):
    compiled: list[str] = []
    whole = llvm_worker.Units.object
    monkeypatch.setattr(llvm_worker.Units, "object", lambda self, text: (compiled.append(text), whole(self, text))[1])
    rx.compile(two_products(8))
    first = compiled.copy()
    assert len(files(directory, "kernels")) == len(first)
    executable = rx.compile(two_products(40))
    second = compiled[len(first) :]
    assert 0 < len(second) < len(first)
    assert not set(first) & set(second)
    x, y, z = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((3, 40), (40, 16), (16, 24)))
    np.testing.assert_allclose(executable(x, y, z), x @ y @ z, rtol=1e-4)


@pytest.mark.parametrize("name", MODULES)
def test_code_is_the_same_where_kernels_are_known(directory, monkeypatch, name):
    """Their functions are declarations when the others are built."""
    declared: list[int] = []
    build = known_kernels.KnownKernels.link

    def link(self, operation):
        build(self, operation)
        declared.append(sum(not f.regions[0].blocks and name_of(f).startswith("kernel.") for f in functions(operation)))

    monkeypatch.setattr(known_kernels.KnownKernels, "link", link)
    made = MODULES[name]()
    expected = rx.compile(made, cache=False)
    for _ in range(2):
        found = rx.compile(made)
        assert found._object_code == expected._object_code
        assert str(found.report) == str(expected.report)
        shutil.rmtree(directory / "objects")
    assert declared[0] == 0 < declared[1]


def relus(*shapes: tuple[int, ...]) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(*(b.relu(b.input(f"x{i}", shape, "f32")) for i, shape in enumerate(shapes)))
    return b.build()


def test_kernels_of_other_types_with_equal_code_are_one(directory):
    shapes = ((1, 48), (48, 1))
    for shape in shapes:
        rx.compile(relus(shape))
    known, code = rx.compile(relus(*shapes)), rx.compile(relus(*shapes), cache=False)._object_code
    assert known._object_code == code
    inputs = [np.linspace(-1, 1, 48, dtype=np.float32).reshape(shape) for shape in shapes]
    for x, y in zip(inputs, known(*inputs), strict=True):
        assert np.array_equal(y, np.maximum(x, 0))


def test_a_damaged_kernel_is_replaced(directory):
    rx.compile(two_products(8))
    before = {p: p.read_bytes() for p in files(directory, "kernels")}
    for path, whole in before.items():
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    x, y, z = (np.ones(shape, np.float32) for shape in ((3, 40), (40, 16), (16, 24)))
    assert np.array_equal(rx.compile(two_products(40))(x, y, z), x @ y @ z)
    assert sum(path.read_bytes() == whole for path, whole in before.items()) >= 1  # those that both modules have


def test_kernels_that_others_wrote_are_not_used(directory, other_user):
    rx.compile(two_products(8))
    kept = {p: p.read_bytes() for p in files(directory, "kernels")}
    cache = ObjectCache(directory, LIMIT).kernels("x")
    cache.put("text", b"code")
    assert cache.get("text") == b"code"
    other_user(directory / "kernels")
    assert cache.get("text") is None
    rx.compile(two_products(40))
    assert {p: p.read_bytes() for p in kept} == kept


#: Reads and writes a few keys; each entry says which key it is of. Ends well when every entry found is whole.
HAMMER = """
import random, sys
from pathlib import Path
from relaxir.object_cache import CompiledModule, ObjectCache, key_of

cache = ObjectCache(Path(sys.argv[1]), 20_000)
random.seed(sys.argv[2])
for _ in range(200):
    name = str(random.randrange(8))
    entry = CompiledModule({"key": name}, name, name.encode() * 4000)
    if random.random() < 0.5:
        cache.put(key_of(name), entry)
    elif cache.get(key_of(name)) not in (None, entry):
        sys.exit(f"damaged: {name}")
"""


def test_processes_share_a_directory(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", HAMMER, str(tmp_path), str(seed)]) for seed in range(4)]
    assert [w.wait(timeout=120) for w in writers] == [0] * 4
    assert files(tmp_path)
    assert all(len(p.name) == 64 for p in files(tmp_path))
    assert any(ObjectCache(tmp_path, 20_000).get(p.name) for p in files(tmp_path))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RELAXIR_CACHE_DIR": ""}, None),
        ({"RELAXIR_CACHE_DIR": "off"}, None),
        ({"RELAXIR_CACHE_DIR": "/x"}, Path("/x")),
        ({"RELAXIR_CACHE_DIR": "~/x", "HOME": "/h"}, Path("/h/x")),
        ({"XDG_CACHE_HOME": "/c"}, Path("/c/relaxir")),
        ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, Path("/h/.cache/relaxir")),
        ({"HOME": "/h"}, Path("/h/.cache/relaxir")),
    ],
)
def test_where_the_cache_is(monkeypatch, variables, expected):
    for name in ("RELAXIR_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment.cache_directory() == expected


def test_how_much_is_kept(monkeypatch):
    assert environment.cache_bytes() == 2**30
    monkeypatch.setenv("RELAXIR_CACHE_BYTES", "5")
    assert environment.cache_bytes() == 5
    for wrong in ("", "0", "1G", "-1"):
        monkeypatch.setenv("RELAXIR_CACHE_BYTES", wrong)
        with pytest.raises(rx.RelaxError, match=f"expected a number of bytes from 1 on in RELAXIR_CACHE_BYTES, got '{wrong}'"):
            environment.cache_bytes()
