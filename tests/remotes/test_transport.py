"""The way to a remote over http, ssh and file: what arrives, what is refused, and that it always ends."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.errors import GitmemError, RemoteRefusedError, RemoteUnreachableError
from gitmem.git.courier import Courier
from gitmem.git.objects import Oid
from gitmem.git.remotes import Remote
from tests.remotes.hub import PASSWORD, USER, HttpHub, SshHub, bare, hook
from tests.remotes.proxy import Proxy
from tests.support import git

SECONDS = 20.0


def silent(what: str, done: int, total: int | None) -> None:
    pass


class Clone:
    """A repository with three commits, and its way out."""

    def __init__(self, folder: Path) -> None:
        git(folder, "init", "-q", "-b", "main", "clone")
        self.folder = folder / "clone"
        self.commits: list[Oid] = []
        for number in range(3):
            (self.folder / "file").write_text(f"{number}\n" * 100)
            git(self.folder, "add", "file")
            git(self.folder, "commit", "-q", "-m", str(number))
            self.commits.append(bytes.fromhex(git(self.folder, "rev-parse", "HEAD")))
        self.courier = Courier(str(self.folder / ".git"))


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    made = Clone(tmp_path)
    yield made
    made.courier.close()


@pytest.fixture(
    params=["file", "http", pytest.param("path", marks=pytest.mark.slow), pytest.param("ssh", marks=pytest.mark.slow)]
)
def remote(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """An empty bare repository at `tmp_path/hubs/hub.git`, by each kind of URL."""
    hub = bare(tmp_path / "hubs" / "hub.git")
    if request.param == "http":
        monkeypatch.setenv("GITMEM_REMOTE_USERNAME", USER)
        monkeypatch.setenv("GITMEM_REMOTE_PASSWORD", PASSWORD)
        with HttpHub(hub.parent, authenticates=True) as server:
            yield Remote(name="hub", url=server.url("hub.git"))
    elif request.param == "ssh":
        with SshHub(tmp_path / "ssh") as sshd:
            monkeypatch.setenv("HOME", str(sshd.home))
            monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
            yield Remote(name="hub", url=sshd.url(hub))
    else:
        yield Remote(name="hub", url=f"file://{hub}" if request.param == "file" else str(hub))


def test_a_push_is_a_compare_and_swap_and_a_fetch_brings_it(clone: Clone, remote: Remote, tmp_path: Path) -> None:
    hub = tmp_path / "hubs" / "hub.git"
    first, second, third = clone.commits
    courier = clone.courier
    assert courier.fetch(remote, [], SECONDS, silent).refs == ()
    assert courier.push(remote, None, first, SECONDS, silent).tip == first
    stale = courier.push(remote, None, second, SECONDS, silent)
    assert (stale.moved, stale.tip) == (True, first)
    assert git(hub, "rev-parse", "main") == first.hex()
    assert courier.push(remote, first, third, SECONDS, silent).tip == third
    assert git(hub, "rev-parse", "main") == third.hex()
    hook(hub, "pre-receive", "echo no more today >&2; exit 1")
    git(clone.folder, "commit", "-q", "--allow-empty", "-m", "more")
    more = bytes.fromhex(git(clone.folder, "rev-parse", "HEAD"))
    with pytest.raises(RemoteRefusedError, match="pre-receive hook declined no more today"):
        courier.push(remote, third, more, SECONDS, silent)
    assert git(hub, "rev-parse", "main") == third.hex()

    git(tmp_path, "init", "-q", "-b", "main", "other")
    other = Courier(str(tmp_path / "other" / ".git"))
    found = other.fetch(remote, [], SECONDS, silent)
    assert (found.tip, found.refs) == (third, ("refs/heads/main",))
    assert git(tmp_path / "other", "log", "--format=%s", third.hex()).split() == ["2", "1", "0"]
    assert git(tmp_path / "other", "for-each-ref") == ""
    other.close()


def test_what_is_missing_or_away_is_one_clear_line(clone: Clone, tmp_path: Path) -> None:
    with HttpHub(tmp_path) as server:
        missing = Remote(name="hub", url=server.url("none.git"))
        with pytest.raises(RemoteRefusedError, match="does not exist, or you may not see it"):
            clone.courier.fetch(missing, [], SECONDS, silent)
    with pytest.raises(RemoteUnreachableError, match=f"127.0.0.1:{server.port}.* cannot be reached"):
        clone.courier.fetch(missing, [], SECONDS, silent)
    with pytest.raises(RemoteRefusedError, match="does not exist"):
        clone.courier.fetch(Remote(name="hub", url=str(tmp_path / "none")), [], SECONDS, silent)


def test_wrong_or_no_credentials_are_refused_without_a_prompt_or_a_word_of_them(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare(tmp_path / "hub.git")
    monkeypatch.setenv("GIT_ASKPASS", "/bin/false")
    monkeypatch.setenv("HOME", str(tmp_path))
    with HttpHub(tmp_path, authenticates=True) as server:
        remote = Remote(name="hub", url=server.url("hub.git"))
        with pytest.raises(RemoteRefusedError, match="credential helper"):
            clone.courier.fetch(remote, [], SECONDS, silent)
        clone.courier.close()
        monkeypatch.setenv("GITMEM_REMOTE_PASSWORD", "wr0ng-secret")
        with pytest.raises(RemoteRefusedError) as refused:
            clone.courier.fetch(remote, [], SECONDS, silent)
    assert "wr0ng-secret" not in str(refused.value) + "".join(server.log)


def test_a_credential_helper_is_asked(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare(tmp_path / "hub.git")
    helper = f"!f() {{ echo username={USER}; echo password={PASSWORD}; }}; f"
    config = tmp_path / "gitconfig"
    git(tmp_path, "config", "--file", str(config), "credential.helper", helper)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    with HttpHub(tmp_path, authenticates=True) as server:
        found = clone.courier.fetch(Remote(name="hub", url=server.url("hub.git")), [], SECONDS, silent)
    assert found.refs == ()


def test_an_ssh_host_that_nobody_knows_is_refused(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = bare(tmp_path / "hub.git")
    with SshHub(tmp_path / "ssh") as sshd:
        monkeypatch.setenv("HOME", str(sshd.home))
        sshd.known_hosts.write_text("")
        with pytest.raises(RemoteRefusedError, match="hostkey"):
            clone.courier.fetch(Remote(name="hub", url=sshd.url(hub)), [], SECONDS, silent)


def _hanging(proxy: Proxy) -> None:
    proxy.hang_after = 0


def _breaking(proxy: Proxy) -> None:
    proxy.break_after = 200


@pytest.mark.parametrize("trouble", [_hanging, _breaking])
def test_a_network_that_hangs_or_breaks_ends_in_time_and_works_again_after(
    clone: Clone, tmp_path: Path, trouble: Callable[[Proxy], None]
) -> None:
    hub = bare(tmp_path / "hub.git")
    with HttpHub(tmp_path) as server, Proxy(server.port) as proxy:
        remote = Remote(name="hub", url=f"http://127.0.0.1:{proxy.port}/hub.git")
        trouble(proxy)
        started = time.monotonic()
        with pytest.raises(GitmemError) as failed:
            clone.courier.push(remote, None, clone.commits[2], 1.5, silent)
        assert isinstance(failed.value, RemoteUnreachableError), failed.value
        assert time.monotonic() - started < SECONDS
        proxy.behave()
        assert clone.courier.push(remote, None, clone.commits[2], SECONDS, silent).tip == clone.commits[2]
    assert git(hub, "rev-parse", "main") == clone.commits[2].hex()


def test_a_truncated_object_cannot_hang_us(clone: Clone, tmp_path: Path) -> None:
    """libgit2 never returns from reading a loose object that was cut short."""
    bare(tmp_path / "hub.git")
    tree = git(clone.folder, "rev-parse", "HEAD^{tree}")
    path = clone.folder / ".git" / "objects" / tree[:2] / tree[2:]
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data[: len(data) // 2])
    with HttpHub(tmp_path) as server, pytest.raises(GitmemError):
        clone.courier.push(Remote(name="h", url=server.url("hub.git")), None, clone.commits[2], 1.0, silent)


def test_nothing_is_left_running(clone: Clone, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_peer:
        remote = Remote(name="hub", url=f"http://127.0.0.1:{silent_peer.getsockname()[1]}/x.git")
        with pytest.raises(RemoteUnreachableError):
            clone.courier.fetch(remote, [], 1.0, silent)
    clone.courier.close()
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and _uses(pid)] == []


def _uses(pid: str) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"gitmem.git.transport" in command and Path(f"/proc/{pid}/stat").read_text().split()[3] == str(
            os.getpid()
        )
    except OSError:
        return False
