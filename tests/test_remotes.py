"""Naming remotes: in Git's own configuration, and never with a secret, an option or a program in disguise."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitmem
from tests.cli import Cli, prepared
from tests.support import git


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    return prepared(tmp_path / "store")


def test_a_remote_is_one_that_plain_git_knows(run: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "hub.git")
    hub = str(tmp_path / "hub.git")
    assert run.ok("remote", "add", "origin", hub) == f"added origin  {hub}\n"
    assert git(run.tree, "remote", "-v").split() == ["origin", hub, "(fetch)", "origin", hub, "(push)"]
    git(run.tree, "push", "-q", "origin", "main")
    git(run.tree, "fetch", "-q", "origin")
    assert git(run.tree, "rev-parse", "origin/main") == git(run.tree, "rev-parse", "main")
    expected = {"name": "origin", "url": hub, "upstream": False, "offline": False}
    assert run.json("remote", "list")["remotes"] == [expected]
    assert run.ok("remote", "remove", "origin") == "removed origin\n"
    assert git(run.tree, "remote") == ""
    assert git(run.tree, "for-each-ref", "refs/remotes", "refs/gitmem") == ""
    assert run.json("remote", "list") == {"remotes": []}


def test_what_plain_git_added_is_listed_without_its_secret(run: Cli) -> None:
    git(run.tree, "remote", "add", "work", "https://pat:hunter2@git.example/memory.git")
    assert run.ok("remote", "list").split() == ["work", "https://git.example/memory.git"]


def test_an_upstream_is_marked_and_there_is_only_one(run: Cli) -> None:
    run.ok("remote", "add", "origin", "https://git.example/a", "--upstream", "--offline")
    assert run.ok("remote", "list").split() == ["origin", "https://git.example/a", "upstream,", "offline", "allowed"]
    assert "origin is the upstream" in run("remote", "add", "other", "https://git.example/b", "--upstream").err
    assert "already" in run("remote", "add", "origin", "https://git.example/b").err
    run.ok("remote", "remove", "origin")
    run.ok("remote", "add", "origin", "https://git.example/b")
    assert run.json("remote", "list")["remotes"][0]["upstream"] is False


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example/a.git",
        "ssh://pat@git.example:2222/a.git",
        "git@git.example:team/a.git",
        "http://127.0.0.1:8080/a.git",
        "http://localhost/a.git",
        "file:///srv/a.git",
        "/srv/a b.git",
    ],
)
def test_urls_that_are_accepted(environment: gitmem.Environment, url: str) -> None:
    environment.remotes.add("origin", url)
    assert [remote.url for remote in environment.remotes.list()] == [url]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "--upload-pack=touch pwned",
        "-oProxyCommand=touch pwned",
        "ext::sh -c touch% pwned",
        "fd::17/x",
        "ssh://-oProxyCommand=touch/x",
        "-oProxyCommand=x:y",
        "ssh://-l@host/x",
        "git://git.example/a.git",
        "ftp://git.example/a.git",
        "http://git.example/a.git",
        "http://127.0.0.1.evil.example/a.git",
        "https:///a.git",
        "https://git.example:port/a.git",
        "file://other-host/srv/a.git",
        "https://git.example/a\ngit",
        "somewhere",
    ],
)
def test_urls_that_are_refused(environment: gitmem.Environment, url: str) -> None:
    with pytest.raises(gitmem.InvalidRequestError):
        environment.remotes.add("origin", url)
    assert environment.remotes.list() == []


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("https://pat:hunter2@git.example/a.git", "hunter2"),
        ("https://ghp_abcdefghijklmnop@github.com/a.git", "ghp_abcdefghijklmnop"),
    ],
)
def test_a_secret_is_refused_and_shown_nowhere(run: Cli, url: str, secret: str) -> None:
    refused = run("remote", "add", "origin", url)
    assert refused.status == 2
    assert "GITMEM_REMOTE_PASSWORD" in refused.err
    assert secret not in refused.out + refused.err + (run.tree / ".git" / "config").read_text()


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a..b", "a.lock", "a b", "a.", 'x"]\n[core', "é"])
def test_names_that_are_refused(environment: gitmem.Environment, name: str) -> None:
    with pytest.raises(gitmem.InvalidRequestError):
        environment.remotes.add(name, "https://git.example/a.git")


def test_plain_http_elsewhere_has_to_be_asked_for(run: Cli) -> None:
    assert "--insecure" in run("remote", "add", "origin", "http://git.example/a").err
    run.ok("remote", "add", "origin", "http://git.example/a", "--insecure")


def test_a_relative_path_counts_from_the_current_folder(
    environment: gitmem.Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert environment.remotes.add("origin", "../hub.git").url == str(tmp_path.parent / "hub.git")


def test_removing_forgets_packed_refs_too(environment: gitmem.Environment, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "hub.git")
    environment.remotes.add("origin", str(tmp_path / "hub.git"))
    git(environment.folder, "push", "-q", "origin", "main")
    git(environment.folder, "pack-refs", "--all")
    environment.remotes.remove("origin")
    assert git(environment.folder, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_held_configuration_is_busy(environment: gitmem.Environment) -> None:
    lock = Path(environment.folder) / ".git" / "config.lock"
    lock.touch()
    with pytest.raises(gitmem.BusyError, match=r"config\.lock"):
        environment.remotes.add("origin", "https://git.example/a.git")
    lock.unlink()


def test_an_unknown_remote(run: Cli) -> None:
    assert run.refused("remote", "remove", "nope")["code"] == "not_found"
