"""Hazard "other people's settings": identities, hooks, filters, variables and kinds of repository change no byte."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from tests.hazards import done, edited, file_of, folder, git_dir, shown, status
from tests.support import git, git_fails
from tests.support import gitmem as run

EXACT = "one\r\ntwo\n\n\ttab $Id$ é \u2028 end"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any Git configuration, whoever runs the tests."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return place


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


def author(environment: gitmem.Environment) -> str:
    return git(environment.folder, "log", "-1", "--format=%an <%ae>", "main")


def unchanged_by_git(environment: gitmem.Environment) -> None:
    """Git and gitmem agree on every byte and mode."""
    assert status(environment) == ""
    listed = git(environment.folder, "ls-tree", "-r", "main").splitlines()
    assert {line.split()[0] for line in listed} == {"100644"}
    committed = git(environment.folder, "show", "main:notes/a.json") + "\n"
    assert file_of(environment, "a").read_bytes() == committed.encode()


# Who

NAMES = [
    (b"[user]\n name = Ana Owner\n email = ana@example.org\n", "Ana Owner <ana@example.org>"),
    (b'[user]\n name = ""\n email = ""\n', "owner <owner@localhost>"),
    (b'[user]\n name = "   "\n email = ana@example.org\n', "owner <ana@example.org>"),
    (b"[user]\n name = Ana Owner\n", "Ana Owner <owner@localhost>"),
    (b'[user]\n name = "A <b> \\n c"\n email = "<e@x>\\n"\n', "A b c <e@x>"),
    (b'[user]\n name = "a\x01b"\n email = "c d@x"\n', "a b <cd@x>"),
    (b'[user]\n name = "<>"\n email = "<>"\n', "owner <owner@localhost>"),
    ("[user]\n name = Ünï 𝒳\n email = ü@example.org\n".encode(), "Ünï 𝒳 <ü@example.org>"),
]


@pytest.mark.parametrize(("config", "expected"), NAMES, ids=[name for _, name in NAMES])
def test_the_owner_is_the_persons_git_identity_cleaned(
    environment: gitmem.Environment, config: bytes, expected: str
) -> None:
    environment.close()
    with (git_dir(environment) / "config").open("ab") as file:
        file.write(b"\n" + config)
    done(environment, "create", "notes", "a", "--title", "A")
    assert author(environment) == expected
    assert git(environment.folder, "log", "-1", "--format=%cn <%ce>", "main") == "gitmem <gitmem@localhost>"
    assert git(environment.folder, "fsck", "--strict") == ""


@pytest.mark.parametrize(
    "config", [b"", b"[user]\n name = \xff\xfe\n email = \xff@x\n", b"[user\nname=x", b"\xef\xbb\xbf[user]\nname=x\n"],
    ids=["none", "not utf-8", "malformed", "bom"],
)  # fmt: skip
def test_any_home_will_do(environment: gitmem.Environment, home: Path, config: bytes) -> None:
    environment.close()
    (home / ".gitconfig").write_bytes(config)
    for name in ("first", "second"):
        done(environment, "create", "notes", name, "--title", "T")
    assert git(environment.folder, "fsck", "--strict") == ""


def test_a_home_that_is_not_there_will_do(environment: gitmem.Environment) -> None:
    done(environment, "create", "notes", "a", "--title", "T", env={"HOME": "/nonexistent", "XDG_CONFIG_HOME": ""})
    assert author(environment) == "owner <owner@localhost>"


# Hooks, signing, filters

HOSTILE = """
[commit]
  gpgSign = true
[gpg]
  program = false
[core]
  autocrlf = true
  safecrlf = true
  eol = crlf
  fileMode = false
  hooksPath = {hooks}
  attributesFile = {attributes}
  excludesFile = {excludes}
  logAllRefUpdates = always
  fsmonitor = {hooks}/fsmonitor
  untrackedCache = true
  ignoreCase = true
  precomposeUnicode = true
  looseCompression = 9
  sharedRepository = group
[filter "upper"]
  clean = tr a-z A-Z
  smudge = tr A-Z a-z
  required = true
[init]
  defaultBranch = trunk
  templateDir = {template}
[feature]
  manyFiles = true
[extensions]
  refStorage = reftable
  objectFormat = sha256
"""


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    """A Git configuration in which everything that could touch a commit does."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    names = ("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "reference-transaction", "fsmonitor")
    for name in (*names, "post-index-change", "post-checkout", "update", "post-rewrite"):
        (hooks / name).write_text(f'#!/bin/sh\ntouch "{tmp_path}/ran-{name}"\nexit 1\n')
        (hooks / name).chmod(0o755)
    shutil.copytree(hooks, tmp_path / "template" / "hooks")
    (tmp_path / "attributes").write_text("*.json filter=upper text eol=crlf ident working-tree-encoding=UTF-16\n")
    (tmp_path / "excludes").write_text("*.json\nnotes/\n")
    return HOSTILE.format(
        hooks=hooks,
        attributes=tmp_path / "attributes",
        excludes=tmp_path / "excludes",
        template=tmp_path / "template",
    )


def test_global_hooks_signing_filters_and_ignores_touch_nothing(hostile: str, home: Path, tmp_path: Path) -> None:
    (home / ".gitconfig").write_text(hostile)
    settings = {"GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}
    store = tmp_path / "store"
    assert run("init", str(store), "--project", "bot", env=settings).returncode == 0
    (store / "gitmem.toml").write_text('project = "bot"\n[memory.notes]\ndescription = "Notes."\n')
    for args in (["deploy", "--agent", "tutor"], ["create", "notes", "a", "--title", "A", "--text-stdin"]):
        ran = run("--store", str(store), *args, stdin=EXACT.encode(), env=settings)
        assert (ran.returncode, ran.stderr) == (0, "")
    assert list(tmp_path.glob("ran-*")) == []
    assert not (store / "bot/development/.git/hooks/pre-commit").exists()
    with gitmem.open_store(store) as opened:
        environment = opened.project("bot").environment("development")
        assert environment.documents("notes").read("a").text == EXACT
    unchanged_by_git(environment)
    assert git(environment.folder, "log", "--format=%G? %s", "main").splitlines()[0] == "N create notes/a"


def test_hooks_signing_and_filters_of_the_repository_touch_nothing_either(
    environment: gitmem.Environment, a: gitmem.Document, hostile: str, tmp_path: Path
) -> None:
    config = git_dir(environment) / "config"
    before = config.read_text()
    config.write_text(before + hostile.partition("[feature]")[0])
    done(environment, "edit", "notes", "a", "--text-stdin", stdin=EXACT)
    done(environment, "create", "notes", "b", "--title", "B")
    done(environment, "remove", "notes", "b")
    assert list(tmp_path.glob("ran-*")) == []
    assert shown(environment, "a") == EXACT
    config.write_text(before)
    unchanged_by_git(environment)


def test_ignore_rules_hide_no_document(environment: gitmem.Environment, a: gitmem.Document) -> None:
    (git_dir(environment) / "info").mkdir(exist_ok=True)
    (git_dir(environment) / "info" / "exclude").write_text("*\n")
    (folder(environment) / "notes" / ".gitignore").write_text("*\n")
    done(environment, "create", "notes", "b", "--title", "B")
    edited(environment, "a", "two")
    unchanged_by_git(environment)


# Variables

VARIABLES = [
    {"GIT_DIR": "{other}/.git"},
    {"GIT_DIR": "{other}/.git", "GIT_WORK_TREE": "{other}"},
    {"GIT_INDEX_FILE": "{other}/.git/index"},
    {"GIT_OBJECT_DIRECTORY": "{other}/.git/objects", "GIT_ALTERNATE_OBJECT_DIRECTORIES": "{other}/.git/objects"},
    {"GIT_COMMON_DIR": "{other}/.git", "GIT_NAMESPACE": "elsewhere", "GIT_CEILING_DIRECTORIES": "/"},
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"},
    {"GIT_AUTHOR_NAME": "Mallory", "GIT_COMMITTER_NAME": "Mallory", "GIT_COMMITTER_DATE": "1 +0000"},
    {"GIT_DEFAULT_HASH": "sha256", "GIT_TEMPLATE_DIR": "{other}"},
]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Somebody's repository that has nothing to do with the store."""
    place = tmp_path / "other"
    place.mkdir()
    (place / "file").write_text("mine\n")
    git(place, "init", "-qb", "main")
    git(place, "add", "file")
    git(place, "commit", "-qm", "mine")
    return place


@pytest.mark.parametrize("variables", VARIABLES, ids=lambda variables: next(iter(variables)))
def test_the_callers_git_variables_lead_nowhere_else(other: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    before = (git(other, "rev-parse", "HEAD"), sorted(path.name for path in other.rglob("*")))
    values = {key: value.format(other=other) for key, value in variables.items()}
    store = tmp_path / "store"
    run("init", str(store), "--project", "bot", cwd=other, env=values)
    (store / "gitmem.toml").write_text('project = "bot"\n[memory.notes]\ndescription = "Notes."\n')
    for args in (["deploy", "--agent", "tutor"], ["create", "notes", "a", "--title", "A"]):
        ran = run("--store", str(store), *args, cwd=other, env=values)
        assert (ran.returncode, ran.stderr) == (0, "")
    assert (git(other, "rev-parse", "HEAD"), sorted(path.name for path in other.rglob("*"))) == before
    assert git(other, "status", "--porcelain") == ""
    with gitmem.open_store(store) as opened:
        environment = opened.project("bot").environment("development")
        assert environment.documents("notes").read("a").title == "A"
    assert git(environment.folder, "log", "-1", "--format=%an %cn") == "owner gitmem"
    unchanged_by_git(environment)


# Forms of `.git/index`

FORMS: dict[str, Callable[[str], object]] = {
    "version 4": lambda e: git(e, "update-index", "--index-version", "4"),
    "split": lambda e: git(e, "update-index", "--split-index"),
    "always split": lambda e: (git(e, "config", "core.splitIndex", "true"), git(e, "update-index", "--refresh")),
    "untracked cache": lambda e: git(e, "update-index", "--untracked-cache"),
    "file monitor": lambda e: (git(e, "config", "core.fsmonitor", "true"), git(e, "status")),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_index_follows_the_saves(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, form: str
) -> None:
    b = notes.create("b", title="B")
    environment.close()
    FORMS[form](environment.folder)
    notes.replace("a", text="two", if_match=a.revision)
    notes.create("c", title="C")
    notes.delete("b", if_match=b.revision)
    environment.close()
    assert status(environment) == ""
    git(environment.folder, "commit", "--allow-empty", "-qam", "by hand")
    assert git(environment.folder, "diff", "--name-only", "main~1", "main") == ""
    assert shown(environment, "a") == "two"
    edited(environment, "a", "three")


@pytest.mark.parametrize(
    "kept", [["--cone", "keep"], ["--cone", "--sparse-index", "keep"], ["--no-cone", "/notes/.resource.json"]],
    ids=["cone", "sparse index", "patterns"],
)  # fmt: skip
def test_a_sparse_checkout_is_no_deletion(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, kept: list[str]
) -> None:
    git(environment.folder, "sparse-checkout", "set", *kept)
    assert not file_of(environment, "a").exists()
    two = notes.replace("a", text="two", if_match=a.revision)
    notes.create("b", title="B")
    environment.close()
    assert notes.read("a") == two
    assert status(environment) == ""
    git(environment.folder, "sparse-checkout", "disable")
    assert status(environment) == ""
    assert '"two"' in file_of(environment, "a").read_text()


def test_a_repository_of_a_kind_that_gitmem_cannot_write_is_refused_in_one_line(tmp_path: Path) -> None:
    with gitmem.open_store(tmp_path / "store", create=True) as store:
        place = Path(store.project("bot").create().folder, "development")
        git(tmp_path, "init", "-q", "--object-format=sha256", str(place))
        environment = store.project("bot").environment("development")
        with pytest.raises(gitmem.StorageError, match="sha256"):
            environment.documents("notes").list()
    assert git_fails(place, "rev-parse", "--verify", "main")
    shutil.rmtree(place)
