"""Real Git servers: `git http-backend` behind a small threaded server, and sshd on loopback."""

from __future__ import annotations

import base64
import getpass
import os
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from tests.support import clean_environment, git

USER, PASSWORD = "pat", "s3cret-of-pat"


def bare(folder: Path) -> Path:
    """An empty bare repository that takes pushes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(folder.parent, "init", "-q", "--bare", "-b", "main", folder.name)
    git(folder, "config", "http.receivepack", "true")
    return folder


def hook(repository: Path, name: str, script: str) -> None:
    """Give a repository a hook; an empty script takes it away."""
    path = repository / "hooks" / name
    if script:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    else:
        path.unlink()


class _Handler(BaseHTTPRequestHandler):
    """Runs `git http-backend` as a CGI program (git-http-backend)."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        self.server.log.append(format % args)

    def _answer(self) -> None:
        body = self._body()
        given = self.headers.get("Authorization", "")
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.server.authenticates and given != expected:
            self._send(b"401 Unauthorized", [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=False,
            env=clean_environment({
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_USER": USER,
                "REMOTE_ADDR": "127.0.0.1",
            }),
        )
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(b": ")[::2] for line in head.split(b"\r\n")]
        status = next((value for key, value in fields if key == b"Status"), b"200 OK")
        self._send(status, [(key.decode(), value.decode()) for key, value in fields if key and key != b"Status"], rest)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, status: bytes, fields: list[tuple[str, str]], body: bytes) -> None:
        code, _, reason = status.decode().partition(" ")
        self.send_response(int(code), reason)
        for key, value in [*fields, ("Content-Length", str(len(body)))]:
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    root: Path
    authenticates: bool
    log: list[str]


class HttpHub:
    """A Git server over HTTP for the bare repositories below a folder. A context manager."""

    def __init__(self, root: Path, *, authenticates: bool = False) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.root, self._server.authenticates, self._server.log = root, authenticates, []
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.port: int = self._server.server_address[1]

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    @property
    def log(self) -> list[str]:
        """One line a request."""
        return self._server.log

    def __enter__(self) -> HttpHub:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class SshHub:
    """sshd on loopback, run by whoever runs the tests, with keys and a home of its own. A context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.home = folder / "home"
        (self.home / ".ssh").mkdir(parents=True, mode=0o700)
        self.key = self.home / ".ssh" / "id_ed25519"
        for path in (folder / "host", self.key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        (folder / "authorized").write_bytes(self.key.with_suffix(".pub").read_bytes())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        host = (folder / "host.pub").read_text().split()
        self.known_hosts = self.home / ".ssh" / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {host[0]} {host[1]}\n")
        (folder / "config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n"
            f"PidFile none\nPermitRootLogin yes\n"
        )
        self._config = folder / "config"
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, repository: Path) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository}"

    def __enter__(self) -> SshHub:
        os.makedirs("/run/sshd", exist_ok=True)
        self._process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", self._config], stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert b"listening" in line, line
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.communicate()
