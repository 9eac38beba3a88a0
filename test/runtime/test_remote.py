"""Checkpoints of HTTP servers and of fsspec's file systems: read by ranges, whatever the server does wrong; or one error."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fsspec
import gguf
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from relaxir import RelaxError
from relaxir.runtime.prepare import PrepareProgress
from relaxir.tools.cli import run
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.opening import decoded, open_tensors
from relaxir.weights.remote import downloads, http_stream, remote_file, tensors
from relaxir.weights.writer import StreamWriter
from support.faulty_server import Fault, FaultyServer, Request
from support.gguf_files import write as write_gguf
from support.hand_compiled import doubling

COUNT, SIZE = 6, 30_000
RAW = {f"w{i}": np.random.default_rng(i).standard_normal(SIZE).astype(np.float32) for i in range(COUNT)}
NBYTES = 4 * SIZE
FILE_BYTES = 4096 + COUNT * NBYTES


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits; pieces are small, so that a tensor has several."""
    monkeypatch.setattr(remote_file.PATIENCE, "first", 0.0)
    monkeypatch.setattr(remote_file.PATIENCE, "attempts", 3)
    monkeypatch.setattr(downloads, "_PIECE", 50_000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultyServer]:
    folder = tmp_path / "served"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", RAW)
    with FaultyServer(folder).running() as running:
        yield running


def shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink(missing_ok=True)
    where = {n: f"model-0000{1 + (i % 2)}-of-00002.safetensors" for i, n in enumerate(RAW)}
    for name in set(where.values()):
        write_safetensors(folder / name, {n: a for n, a in RAW.items() if where[n] == name})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    (folder / "config.json").write_text('{"model_type": "none"}')


def read(url: str) -> dict[str, np.ndarray[Any, Any]]:
    source = open_tensors(url)
    return {name: source.get(name) for name in source}


def same(found: dict[str, Any]) -> bool:
    return found.keys() == RAW.keys() and all(np.array_equal(found[n], RAW[n]) for n in RAW)


def refused(text: str, function: Callable[[], object]) -> None:
    with pytest.raises(RelaxError) as error:
        function()
    assert text in str(error.value)


def once(fault: Fault, numbers: tuple[int, ...] = (1, 3, 4)) -> Callable[[Request], Fault | None]:
    return lambda request: fault if request.number in numbers else None


def test_files_and_folders(server: FaultyServer) -> None:
    assert same(read(f"{server.url}/model.safetensors"))
    assert same(read(server.url))
    assert same(read(f"{server.url}/"))
    assert open_tensors(server.url).config == {}
    shard(server.folder)
    for end in ("", "/", "/model.safetensors.index.json"):
        assert same(read(f"{server.url}{end}"))
        assert open_tensors(f"{server.url}{end}").config == {"model_type": "none"}
    whole = [r for r in server.requests if r.begin is None]
    assert {r.name for r in whole} <= {"config.json", "model.safetensors.index.json"}


def test_prepared_as_from_the_disk(server: FaultyServer, tmp_path: Path) -> None:
    shard(server.folder)
    report = doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out")
    assert report.steps_run == COUNT
    assert report.predicted_peak_bytes >= report.peak_bytes
    out = Checkpoint(tmp_path / "out")
    assert all(np.array_equal(out.get(f"p{i}"), 2 * RAW[f"w{i}"]) for i in range(COUNT))
    begins = [(r.name, r.begin) for r in server.requests if r.begin]
    assert len(begins) == len(set(begins))  # nothing twice


FAULTS = {
    "a connection that is closed": Fault(status=0),
    "half of the bytes": Fault(cut=100),
    "too many requests": Fault(status=429, headers={"Retry-After": "0"}),
    "unavailable": Fault(status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "the whole file": Fault(status=200, headers={"Content-Range": None}),
    "another length": Fault(headers={"Content-Length": "7"}),
    "another range": Fault(headers={"Content-Range": f"bytes 8-15/{FILE_BYTES}"}),
    "no range": Fault(headers={"Content-Range": None}),
    "a range that is none": Fault(headers={"Content-Range": "bytes 8-7/*"}),
    "a digest of others": Fault(headers={"Content-Digest": f"sha-256=:{base64.b64encode(bytes(32)).decode()}:"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_attempts_are_made_again(server: FaultyServer, name: str) -> None:
    server.fault = once(FAULTS[name], (0, 2, 4))
    assert same(read(f"{server.url}/model.safetensors"))


@pytest.mark.parametrize("name", [n for n in FAULTS if n != "half of the bytes"])
def test_attempts_end_in_an_error_that_names_file_and_tensor(server: FaultyServer, name: str) -> None:
    source = open_tensors(f"{server.url}/model.safetensors")
    server.fault = lambda request: FAULTS[name]
    refused(f"'{server.url}/model.safetensors': tensor 'w3': expected bytes ", lambda: source.get("w3"))


def test_what_was_read_is_kept(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file.PATIENCE, "progress", 1000)
    source = open_tensors(f"{server.url}/model.safetensors")
    before = len(server.requests)
    server.fault = lambda request: Fault(cut=9_000)
    assert np.array_equal(source.get("w3"), RAW["w3"])
    begins = sorted(r.begin for r in server.requests[before:] if r.begin is not None)
    assert len(begins) == len(set(begins)) == 6 + 6 + 3  # of 50,000, 50,000 and 20,000 bytes
    monkeypatch.setattr(remote_file.PATIENCE, "progress", 10_000)
    refused("tensor 'w4': expected bytes ", lambda: source.get("w4"))


def test_a_server_that_gives_less_at_once(server: FaultyServer) -> None:
    source = open_tensors(f"{server.url}/model.safetensors")
    content = (server.folder / "model.safetensors").read_bytes()

    def short(request: Request) -> Fault:
        begin = request.begin or 0
        part = content[begin : min(begin + 9_000, request.end or 0)]
        return Fault(body=part, headers={"Content-Range": f"bytes {begin}-{begin + len(part) - 1}/{len(content)}"})

    server.fault = short
    assert np.array_equal(source.get("w3"), RAW["w3"])


def test_more_bytes_than_the_range_has(server: FaultyServer) -> None:
    server.fault = lambda request: Fault(headers={"Content-Length": None, "Connection": "close"}, cut=10**9)
    source = open_tensors(f"{server.url}/model.safetensors")
    assert np.array_equal(source.get("w1"), RAW["w1"])
    content = (server.folder / "model.safetensors").read_bytes()
    server.fault = lambda request: Fault(
        body=content[request.begin : request.end] + b"more", headers={"Content-Length": None, "Connection": "close"}, cut=10**9
    )
    refused("got more than ", lambda: source.get("w2"))


def test_a_slow_server(server: FaultyServer) -> None:
    server.fault = lambda request: Fault(throttle=0.02)
    assert same(read(f"{server.url}/model.safetensors"))


def test_a_digest_of_the_bytes(server: FaultyServer) -> None:
    content = (server.folder / "model.safetensors").read_bytes()

    def with_digest(request: Request) -> Fault:
        digest = base64.b64encode(hashlib.sha512(content[request.begin : request.end]).digest()).decode()
        return Fault(headers={"Content-Digest": f"sha-512=:{digest}:"})

    server.fault = with_digest
    assert same(read(f"{server.url}/model.safetensors"))


@pytest.mark.parametrize(
    "fault",
    [Fault(headers={"ETag": '"other"'}), Fault(headers={"Content-Range": "bytes 8-15/999999"}), Fault(status=416)],
    ids=["tag", "size", "shorter"],
)
def test_a_file_that_is_replaced(server: FaultyServer, fault: Fault) -> None:
    source = open_tensors(f"{server.url}/model.safetensors")
    server.fault = lambda request: fault
    refused("it was replaced while it is read", lambda: source.get("w3"))
    assert "w3" in source


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault(status=404), "/model.safetensors': expected model.safetensors or model.safetensors.index.json"),
        (Fault(status=403), "/model.safetensors': expected a file, got status 403, access is denied"),
        (Fault(status=418), "/model.safetensors': expected a file, got status 418"),
        (Fault(status=503), "/model.safetensors': expected a file, got status 503 (3 attempts)"),
        (Fault(status=0), "(3 attempts)"),
        (Fault(headers={"Content-Encoding": "gzip"}), "got bytes in another encoding (gzip)"),
        (Fault(status=416, headers={"Content-Range": "bytes */0"}), "expected a safetensors file of at least 8 bytes, got 0"),
        (Fault(status=302, headers={"Location": "/nowhere"}), "got neither"),
    ],
)
def test_files_that_do_not_open(server: FaultyServer, fault: Fault, text: str) -> None:
    server.fault = lambda request: fault if request.name == "model.safetensors" else None
    refused(text, lambda: open_tensors(f"{server.url}/model.safetensors"))


def test_redirections_are_followed(server: FaultyServer) -> None:
    server.fault = lambda request: (
        Fault(status=302, headers={"Location": "/model.safetensors"}) if request.name == "moved.safetensors" else None
    )
    assert same(read(f"{server.url}/moved.safetensors"))


def test_truncated_files(server: FaultyServer) -> None:
    path = server.folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    refused("(truncated)", lambda: open_tensors(f"{server.url}/model.safetensors"))
    path.write_bytes(path.read_bytes()[:100])
    refused("(truncated)", lambda: open_tensors(f"{server.url}/model.safetensors"))


def test_folders_that_do_not_open(server: FaultyServer) -> None:
    shard(server.folder)
    index = server.folder / "model.safetensors.index.json"
    where = json.loads(index.read_text())["weight_map"]
    for name in ("../secret.safetensors", "/etc/passwd", "http://other/x", "a//b", ".."):
        index.write_text(json.dumps({"weight_map": where | {"w9": name}}))
        refused(f"expected the name of a file inside '{server.url}', got {name!r}", lambda: open_tensors(server.url))
    index.write_text(json.dumps({"weight_map": where | {"w9": where["w1"]}}))
    refused(f"index.json': tensor 'w9': expected it in '{where['w1']}'", lambda: open_tensors(server.url))
    index.write_text("[")
    refused("index.json': expected an index in JSON", lambda: open_tensors(server.url))
    index.unlink()
    refused(f"'{server.url}': expected model.safetensors or model.safetensors.index.json", lambda: open_tensors(server.url))
    refused("expected safetensors or GGUF to read by ranges", lambda: open_tensors(f"{server.url}/model.bin"))


def test_large_indexes_are_refused(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    shard(server.folder)
    monkeypatch.setattr(tensors, "MAX_INDEX_BYTES", 100)
    refused("index.json': expected an index of at most 100 bytes, got more", lambda: open_tensors(server.url))


def test_secrets_are_not_told(server: FaultyServer) -> None:
    secret = server.url.replace("http://", "http://me:word@") + "/model.safetensors?signature=abc"
    source = open_tensors(secret)
    assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'me:word').decode()}"
    server.fault = lambda request: Fault(status=403)
    with pytest.raises(RelaxError) as error:
        source.get("w0")
    assert not any(word in f"{error.value} {source.path} {source.identity}" for word in ("word", "abc"))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_preparation_goes_on_where_it_was(server: FaultyServer, tmp_path: Path, is_replaced: bool) -> None:
    def stop(progress: PrepareProgress) -> None:
        if progress.steps_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out", progress=stop)
    if is_replaced:
        write_safetensors(server.folder / "model.safetensors", {n: a + 1 for n, a in RAW.items()})
    before = len(server.requests)
    report = doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out")
    assert report.steps_skipped == (0 if is_replaced else 3)
    # Each byte once: a download that stalls on a busy machine is asked for again from where it stopped.
    read_again = set[int]().union(*(range(r.begin, r.end or 0) for r in server.requests[before:] if r.begin))
    assert is_replaced or len(read_again) <= 3 * NBYTES
    expected = 2 * (RAW["w5"] + (1 if is_replaced else 0))
    assert np.array_equal(Checkpoint(tmp_path / "out").get("p5"), expected)


def test_without_tags_nothing_is_gone_on_with(server: FaultyServer) -> None:
    server.tags = False
    assert open_tensors(server.url).identity is None
    assert same(read(server.url))


def test_read_ahead_stays_within_its_limit(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_AHEAD_BYTES", 130_000)
    source = open_tensors(f"{server.url}/model.safetensors")
    before = len(server.requests)
    for name in RAW:
        source.prefetch(name)
    held: Any = source._downloads  # pyright: ignore
    assert held._bytes <= 130_000
    assert len(held._ahead) == 3
    assert same({n: source.get(n) for n in RAW})
    assert held._bytes == 0
    assert not held._ahead
    begins = [r.begin for r in server.requests[before:]]
    assert len(begins) == len(set(begins)) == 3 * COUNT - 1  # opening has read the first
    source.release("w0")
    source.prefetch("w0")
    source.release("w0")
    assert held._bytes == 0
    assert not held._ahead


def test_memory_limits_count_downloads(server: FaultyServer, tmp_path: Path) -> None:
    refused("bytes or more", lambda: doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out", memory_limit=3 * NBYTES))
    doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out", memory_limit=20 * NBYTES, jobs=2)
    assert np.array_equal(Checkpoint(tmp_path / "out").get("p5"), 2 * RAW["w5"])


def test_checksums_of_the_file(server: FaultyServer) -> None:
    path = server.folder / "model.safetensors"
    specs = {n: open_tensors(path).spec(n) for n in RAW}
    with StreamWriter(str(path), specs, {}, checksums=True) as writer:
        for name, array in RAW.items():
            writer.put(name, array)
    source, content = open_tensors(f"{server.url}/model.safetensors"), path.read_bytes()
    before = len(server.requests)

    def flipped(request: Request) -> Fault:
        part = bytearray(content[request.begin : request.end])
        part[17] ^= 1
        return Fault(body=bytes(part))

    server.fault = lambda request: flipped(request) if request.number == before else None
    assert np.array_equal(source.get("w3"), RAW["w3"])
    server.fault = flipped
    refused("tensor 'w4': expected the bytes that its checksum is of, got others, twice", lambda: source.get("w4"))


def test_gguf(server: FaultyServer) -> None:
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 256, (4, 10 * 34), np.uint8)
    raw.reshape(4, 10, 34)[..., 1] = 0x2C
    path = write_gguf(server.folder / "m.gguf", {"a": (raw, gguf.GGMLQuantizationType.Q8_0), "b": (RAW["w0"], None)})
    server.fault = once(Fault(cut=100), (1, 3))
    here, there = decoded(open_tensors(path)), decoded(open_tensors(f"{server.url}/m.gguf"))
    assert sorted(here) == sorted(there)
    for name in here:
        there.prefetch(name)
        assert here.spec(name) == there.spec(name)
        assert np.array_equal(here.get(name), there.get(name))
        there.release(name)
    assert there.identity is not None
    there.check_unchanged()
    server.fault = lambda request: Fault(status=500)
    refused(f"'{server.url}/m.gguf': tensor 'b': ", lambda: there.get("b"))


def test_weights_are_found_again_in_the_cache(server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    doubling(COUNT, SIZE).load_weights(server.url)
    before = len(server.requests)
    doubling(COUNT, SIZE).load_weights(f"{server.url}?other=signature")
    assert all(not r.begin for r in server.requests[before:])
    refused("expected a file of this machine to map, got a URL", lambda: doubling(COUNT, SIZE).bind(server.url))


def test_several_ranks(server: FaultyServer, tmp_path: Path) -> None:
    for rank in (1, 0):
        doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out.safetensors", rank=rank, world=2)
    out = Checkpoint(tmp_path / "out.safetensors")
    assert all(np.array_equal(out.get(f"p{i}"), 2 * RAW[f"w{i}"]) for i in range(COUNT))


def test_the_command_line(server: FaultyServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doubling(COUNT, SIZE).save(tmp_path / "m.relax")
    assert run(["prepare", str(tmp_path / "m.relax"), server.url, "-o", str(tmp_path / "out")]) == 0
    assert run(["prepare", str(tmp_path / "m.relax"), f"{server.url}/none.safetensors", "-o", str(tmp_path / "other")]) == 1
    assert "none.safetensors': expected " in capsys.readouterr().err


def test_a_server_without_ranges(server: FaultyServer, tmp_path: Path) -> None:
    """As ``python -m http.server``: each file is one stream, in whatever order tensors are asked for."""
    server.ranges = False
    assert same(dict(reversed(read(f"{server.url}/model.safetensors").items())))
    before = len(server.requests)
    report = doubling(COUNT, SIZE).prepare(server.url, tmp_path / "out", jobs=2)
    note = f"'{server.url}/model.safetensors' read as a stream into a temporary file: its server sends no ranges"
    assert note in str(report)
    assert [r.begin for r in server.requests[before:] if r.name == "model.safetensors"] == [0, 0, None]
    assert all(np.array_equal(Checkpoint(tmp_path / "out").get(f"p{i}"), 2 * RAW[f"w{i}"]) for i in range(COUNT))
    shard(server.folder)
    assert same(read(server.url))
    assert open_tensors(server.url).config == {"model_type": "none"}
    write_gguf(server.folder / "m.gguf", {"a": (RAW["w0"], None), "b": (RAW["w1"], None)})
    found = decoded(open_tensors(f"{server.url}/m.gguf"))
    assert np.array_equal(found.get("b"), RAW["w1"])


def test_a_stream_that_breaks_off_goes_on(server: FaultyServer) -> None:
    server.ranges = False
    server.fault = lambda request: Fault(cut=150_000) if request.number in (2, 3) else None
    assert same(read(f"{server.url}/model.safetensors"))
    assert [r.begin for r in server.requests] == [0, 0, None, None, None]
    server.fault = lambda request: Fault(cut=150_000)
    source = open_tensors(f"{server.url}/model.safetensors")
    assert np.array_equal(source.get("w0"), RAW["w0"])
    refused("tensor 'w5': expected bytes ", lambda: source.get("w5"))


def test_a_stream_of_unknown_length(server: FaultyServer) -> None:
    server.ranges = False
    server.fault = lambda request: Fault(headers={"Content-Length": None, "Connection": "close"}, cut=10**9)
    assert same(read(f"{server.url}/model.safetensors"))


def test_a_stream_of_another_file(server: FaultyServer) -> None:
    server.ranges = False
    server.fault = lambda request: Fault(cut=150_000)
    source = open_tensors(f"{server.url}/model.safetensors")
    server.fault = lambda request: Fault(headers={"ETag": '"other"'})
    refused("it was replaced while it is read", lambda: source.get("w5"))


@pytest.mark.parametrize("place", ["TemporaryFile", "write"])
def test_a_stream_that_has_no_room(server: FaultyServer, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    server.ranges = False

    full = Mock(**{f"{place}.side_effect": OSError(28, "No space left on device")})
    full.TemporaryFile.return_value = full
    monkeypatch.setattr(http_stream, "tempfile", full)
    refused("model.safetensors': expected a file, got no ranges from its server, and no ", lambda: read(server.url))


def test_urls_of_files_of_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", RAW)
    assert same(read(f"{folder.as_uri()}/model.safetensors"))
    assert same(read(folder.as_uri().replace("file://", "file://localhost")))
    report = doubling(COUNT, SIZE).prepare(folder.as_uri(), (tmp_path / "out").as_uri())
    doubling(COUNT, SIZE).bind(report)
    refused(
        "expected file:/// and a path of this machine, got the host 'other'", lambda: read("file://other/model.safetensors")
    )
    refused("cannot read '", lambda: read((tmp_path / "none.safetensors").as_uri()))


class _FaultyFiles(MemoryFileSystem):
    """Files in memory, of which each range is read at the third attempt: one fails, and one gives too little."""

    protocol = "faulty"
    store: dict[str, Any] = {}
    pseudo_dirs = [""]
    reads = Counter[object]()
    error: Exception = OSError("reset by peer")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("faulty://", "memory://"))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self.reads[path, start, end] += 1
        if self.reads[path, start, end] % 3 == 1:
            raise self.error
        found: bytes = super().cat_file(path, start, end, **options)
        return found[:-1] if self.reads[path, start, end] % 3 == 2 else found


def test_file_systems_of_fsspec(server: FaultyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fsspec.register_implementation("faulty", _FaultyFiles, clobber=True)
    shard(server.folder)
    files: Any = fsspec.filesystem("faulty")
    for path in server.folder.iterdir():
        files.pipe_file(f"/bucket/model/{path.name}", path.read_bytes())
    source = open_tensors("faulty://bucket/model")
    assert source.config == {"model_type": "none"}
    assert source.identity is not None
    assert same(read("faulty://bucket/model/"))
    source.check_unchanged()
    refused("expected model.safetensors or", lambda: open_tensors("faulty://bucket/other"))
    refused("expected a driver of fsspec for nosuch://, got none", lambda: open_tensors("nosuch://bucket/m.safetensors"))
    monkeypatch.setattr(_FaultyFiles, "error", PermissionError("not yours"))
    refused("got PermissionError: not yours", lambda: [source.get(n) for n in source])
    monkeypatch.setattr(_FaultyFiles, "error", ImportError("no module named 'faultyfs'"))
    refused("expected the driver's package to be installed, got no module named 'faultyfs'", lambda: source.get("w1"))
    files.pipe_file("/bucket/model/model-00001-of-00002.safetensors", b"x")
    refused("got another one: it was replaced while it is read", source.check_unchanged)


@pytest.mark.parametrize(("module", "url"), [("urllib3", "http://h/x.safetensors"), ("fsspec.core", "s3://b/x.safetensors")])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, module: str, url: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refused("pip install relaxir[remote]", lambda: open_tensors(url))
