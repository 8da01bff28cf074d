"""The library against a plain dictionary: random operations, other writers, plain Git and lost indexes between."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import gitmem
from gitmem import Document, DocumentInfo, Documents, ErrorCode, GitmemError, Version, Writer, doctor
from gitmem.clock import to_rfc3339
from gitmem.codec import Content, encode
from gitmem.environment.layout import Name, locate
from tests.model import Model, Refused, Written, changed
from tests.start_states import DESCRIPTION, StartState, StartStates
from tests.support import fsck, git
from tests.workshop import START, ManualClock

THERE = ["d000", "d001", "long"]
NEW = ["a", "A", "b", "-rf"]
TEXTS = ["", "one", "one\ntwo\n", "\n", "\ufeffone\r\ntwo", "\u2028\0\x85", "é" * 100, "é" * 100 + "a"]
AGENT = Writer(kind="agent", session_id="ses_1")

_serial = itertools.count()
new = st.sampled_from(NEW)
rarely = st.sampled_from([False, False, False, True])
texts = st.sampled_from(TEXTS) | st.text(max_size=30)
titles = st.sampled_from(["Title", "Other title", "T\n2"]) | st.text(min_size=1, max_size=10)
summaries = st.sampled_from(["", "Summary"])
policies = st.sampled_from(["enabled", "disabled"])
contents = st.builds(Content, titles, summaries, policies, texts)
handles = st.integers(0, 1)
back = st.sampled_from([0, 0, 1, 2])


class Machine(RuleBasedStateMachine):
    """A store with its model; `writers` open handles take turns."""

    documents = Bundle("documents")
    start: StartState
    writers: int
    work: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = self.work / "store"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.model: Model = self.start.copy(self.folder)
        self.repository = self.folder / "bot/development"
        self.clock = ManualClock(START + 10)
        self.stores = [self._opened() for _ in range(self.writers)]

    def _opened(self) -> gitmem.Store:
        return gitmem.open_store(self.folder, settings=gitmem.Settings(clock=self.clock))

    def environment(self, handle: int) -> gitmem.Environment:
        return self.stores[handle % self.writers].project("bot").environment()

    def notes(self, handle: int) -> Documents:
        return self.environment(handle).documents("notes")

    # Saves

    @initialize(target=documents)
    def begin(self) -> Any:
        return multiple(*THERE)

    @rule(target=documents, handle=handles, name=documents | new, content=contents)
    def create(self, handle: int, name: str, content: Content) -> str:
        self.check_save(
            handle,
            name,
            lambda: self.model.save(self.clock.now, name, content, "create", expected=None),
            lambda: self.notes(handle).create(
                name,
                title=content.title,
                text=content.text,
                summary=content.summary,
                agent_writes=content.agent_writes,
            ),
        )
        return name

    @rule(handle=handles, name=documents, text=texts, summary=st.none() | summaries, stale=back, agent=st.booleans())
    def replace(self, handle: int, name: str, text: str, summary: str | None, stale: int, agent: bool) -> None:
        expected, content = self.seen(name, stale)
        new = changed(content, text=text) if summary is None else changed(content, text=text, summary=summary)
        writer = AGENT if agent else Writer()
        self.check_save(
            handle,
            name,
            lambda: self.model.save(self.clock.now, name, new, "replace", expected=expected, writer=writer),
            lambda: self.notes(handle).replace(name, text=text, summary=summary, if_match=expected, writer=writer),
        )

    @rule(handle=handles, name=documents, title=st.none() | titles, policy=policies, stale=back)
    def patch(self, handle: int, name: str, title: str | None, policy: Any, stale: int) -> None:
        expected, content = self.seen(name, stale)
        new = changed(content, title=title or content.title, agent_writes=policy)
        freeze = "freeze" if policy == "disabled" else "unfreeze"
        operation = "retitle" if policy == content.agent_writes else "patch" if new.title != content.title else freeze
        self.check_save(
            handle,
            name,
            lambda: self.model.save(self.clock.now, name, new, operation, expected=expected),
            lambda: self.notes(handle).patch(name, title=title, agent_writes=policy, if_match=expected),
        )

    @rule(handle=handles, name=documents, stale=back, really=rarely)
    def delete(self, handle: int, name: str, stale: int, really: bool) -> None:
        if not really and stale == 0:
            return  # an id is gone for ever, and there are few
        expected, _ = self.seen(name, stale)
        self.check_save(
            handle,
            name,
            lambda: self.model.save(self.clock.now, name, None, "delete", expected=expected),
            lambda: self.notes(handle).delete(name, if_match=expected),
        )

    @rule(handle=handles, name=documents, to=st.integers(0, 70), stale=back)
    def restore(self, handle: int, name: str, to: int, stale: int) -> None:
        expected, content = self.seen(name, stale)
        old = self.version(name, to)

        def expect() -> Written:
            if not self.model.live(name) or not old.content:
                raise Refused(gitmem.ErrorCode.NOT_FOUND)
            new = changed(old.content, agent_writes=content.agent_writes)
            return self.model.save(self.clock.now, name, new, "restore", expected=expected)

        self.check_save(handle, name, expect, lambda: self.notes(handle).restore(name, old.revision, if_match=expected))

    @rule(handle=handles, limit=st.sampled_from([3, 200, 8192]))
    def deploy(self, handle: int, limit: int) -> None:
        if any(content and len(content.text.encode()) > limit for content in self.model.pending.values()):
            return
        provider = gitmem.document_memory(max_bytes=limit)
        memory = gitmem.define_memory(id="notes", description=DESCRIPTION, provider=provider)
        self.environment(handle).deploy(agent="tutor", memories=[memory])
        self.model.set_limit(self.clock.now, limit)

    @rule(
        handle=handles,
        name=documents,
        steps=st.lists(st.tuples(st.integers(-900, 900), policies, texts, st.integers(0, 3)), min_size=2, max_size=5),
    )
    def write_on(self, handle: int, name: str, steps: list[tuple[int, str, str, int]]) -> None:
        """One document written several times in a row, by turns, while the clock goes forth and back."""
        for turn, (milliseconds, policy, text, kind) in enumerate(steps):
            self.clock.move(milliseconds)
            if kind == 0:
                self.patch(handle + turn, name, text[:9] or None, policy, 0)
            elif kind == 1:
                self.restore(handle + turn, name, len(text), 0)
            else:
                self.replace(handle + turn, name, text, None, kind % 2, turn % 2 == 0)

    def seen(self, name: str, stale: int) -> tuple[str, Content]:
        """The revision that a caller names (now and then not the newest), and the newest content."""
        live = self.model.live(name)
        content = live.content if live else None
        return self.version(name, stale).revision, content or Content("Title", "", "enabled", "")

    def version(self, name: str, back: int) -> Written:
        versions = self.model.versions.get(name)
        if not versions:
            return Written(None, 0, "none", revision="0" * 40)
        return versions[-1 - back % len(versions)]

    def check_save(
        self, handle: int, name: str, expect: Callable[[], Written], call: Callable[[], Document | None]
    ) -> None:
        """Do the same on the model and through the library: the same document, or the same refusal."""
        if name in self.model.pending and name not in self.model.versions:
            self.path(name).rename(self.belongs(name))  # the folder may have been split meanwhile
        version, code = outcome(expect)
        if code:
            with pytest.raises(GitmemError) as raised:
                call()
            assert raised.value.code == code, raised.value
        document = call() if version else None
        self.name_revisions(handle, name)
        if document and version:
            assert document == self.notes(handle).read(name)
            assert document.revision == version.revision
        self.check_document(handle, name)

    def name_revisions(self, handle: int, name: str) -> None:
        """Let the library name the versions that it has just made."""
        unnamed = [version for version in self.model.versions.get(name, ()) if not version.revision]
        known = {v.revision for versions in self.model.versions.values() for v in versions}
        if unnamed:
            for version, found in zip(reversed(unnamed), self.notes(handle).history(name).versions, strict=False):
                assert found.revision not in known
                version.revision = found.revision

    # Time, handles and what is derived

    @rule(milliseconds=st.sampled_from([1, 999, 1000, 3_600_000, -500, -5000, -200_000_000]))
    def tick(self, milliseconds: int) -> None:
        self.clock.move(milliseconds)

    @rule(handle=handles, lost=st.sampled_from(["nothing", "index.sqlite", "index.sqlite*", "*"]), close=st.booleans())
    def lose(self, handle: int, lost: str, close: bool) -> None:
        """Lose something derived while handles are open; close and open one of them (`close`)."""
        if lost != "nothing" and self.undoes_a_version():
            return
        derived = self.repository / ".git/gitmem"
        if lost == "*":
            aside = self.work / f"gitmem-{next(_serial)}"  # a thread at work may still be writing in it
            derived.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            for path in derived.glob(lost):
                path.unlink()
        if close:
            at = handle % self.writers
            self.stores[at].close()
            self.stores[at] = self._opened()
        self.listings_agree()
        self.rest()

    def rest(self) -> None:
        """Close every handle: nothing lags any more, and no thread takes a lock of Git's beside a person."""
        for handle in range(self.writers):
            self.environment(handle).close()

    def undoes_a_version(self) -> bool:
        """Whether a hand edit holds an older version: with the index gone, nobody could tell it from a lagging file."""
        return any(
            content == version.content
            for name, content in self.model.pending.items()
            for version in self.model.versions.get(name, ())
        )

    # Hand edits, not committed

    @rule(target=documents, name=documents | new, content=contents, plain=st.booleans())
    def edit_file(self, name: str, content: Content, plain: bool) -> Any:
        if self.model.dead(name) or len(content.text.encode()) > self.model.limit:
            return multiple()
        path = self.path(name) if name in self.model.versions else self.belongs(name)
        path.write_bytes(by_hand(content) if plain else encode(content))
        self.model.pending[name] = content
        return name

    @rule(name=documents, really=rarely)
    def remove_file(self, name: str, really: bool) -> None:
        if really and self.model.live(name) and self.path(name).exists():
            self.path(name).unlink()
            self.model.pending[name] = None

    @rule(handle=handles, name=documents)
    def spoil_file(self, handle: int, name: str) -> None:
        """What is no document is left alone by a save, and comes back to normal when a person gives it up."""
        live, path = self.model.live(name), self.path(name)
        if not live or name in self.model.pending:
            return
        path.write_bytes(b"not a document")
        self.replace(handle, name, "saved beside it", None, 0, False)
        assert self.path(name).read_bytes() == b"not a document"
        self.person("checkout", "-q", "--", str(self.path(name)))
        self.environment(handle).close()  # which sees that the edit was given up

    def path(self, name: str) -> Path:
        """Where a person finds a document's file, or makes one."""
        found = [str(path) for path in (self.repository / "notes").rglob(f"{name}.json")]
        assert len(found) < 2, found
        found += self.person("ls-files", "--", f"**/{name}.json").split()
        return self.repository / (found or [f"notes/{name}.json"])[0]

    def belongs(self, name: str) -> Path:
        """Where a new document's file is looked for; its folder is made."""
        repository = self.environment(0).parts().repository
        tip = repository.tip()
        assert tip
        path = self.repository.joinpath(*locate(repository.trees, repository.commit(tip).tree, Name("notes", name))[0])
        path.parent.mkdir(exist_ok=True)
        return path

    # Commits by a person

    @rule(names=st.lists(documents | new, min_size=1, max_size=3, unique=True), content=contents, plain=st.booleans())
    def commit(self, names: list[str], content: Content, plain: bool) -> None:
        """Edit or create documents, and commit them together."""
        names = [name for name in names if not self.model.dead(name)]
        for name in names:
            self.path(name).write_bytes(by_hand(content) if plain else encode(content))
            self.person("add", "--", str(self.path(name)))
        if staged := self.staged():
            revision = self.person_commits("edit by hand")
            for name in staged:
                self.model.commit(self.seconds, name, content, revision, "edit by hand")
        for name in names:
            self.model.pending.pop(name, None)

    @rule(name=documents, really=rarely)
    def commit_removal(self, name: str, really: bool) -> None:
        if really and self.model.live(name) and name not in self.model.pending:
            self.person("rm", "-q", "--", str(self.path(name)))
            self.model.commit(self.seconds, name, None, self.person_commits("remove by hand"), "remove by hand")

    @rule(old=documents, new=documents | new, really=rarely)
    def commit_move(self, old: str, new: str, really: bool) -> None:
        live = self.model.live(old)
        if not really or old == new or not live or {old, new} & self.model.pending.keys():
            return
        if self.model.dead(new):
            return
        self.person("mv", "-f", "--", str(self.path(old)), str(self.path(new)))
        staged = self.staged()
        revision = self.person_commits("move by hand")
        for name in staged:
            self.model.commit(self.seconds, name, live.content if name == new else None, revision, "move by hand")

    @rule(name=documents)
    def flatten(self, name: str) -> None:
        """A file moved to another place of the same document makes no version."""
        target = self.repository / "notes" / f"{name}.json"
        if self.model.live(name) and name not in self.model.pending and self.path(name) != target:
            self.person("mv", "--", str(self.path(name)), str(target))
            self.person_commits("flatten by hand")
            self.model.tip_time = self.seconds * 1000

    @precondition(lambda self: not self.model.pending)
    @rule(handle=handles, name=documents, other=documents, title=titles, text=texts, both=st.booleans())
    def merge(self, handle: int, name: str, other: str, title: str, text: str, both: bool) -> None:
        """A side branch edits one document while the library saves another, or the same (`both`)."""
        live, base = self.model.live(name), self.model.live(other)
        if not live or not live.content or not base or title == live.content.title:
            return
        if self.path(name).read_bytes() != encode(live.content):
            return  # a person's form on one line conflicts with any other change
        self.clock.now = max(self.clock.now, self.model.tip_time + 1000)
        self.person("checkout", "-q", "-b", "side")
        self.path(name).write_bytes(encode(changed(live.content, title=title)))
        self.person("add", "-A")
        side, side_seconds = self.person_commits("side"), self.seconds
        self.clock.move(2000)
        self.replace(handle, name if both else other, text, None, 0, False)
        self.rest()  # git merge stops halfway where another process holds the lock on .git/index
        self.person("checkout", "-q", "main")
        now = self.model.live(name)
        assert now
        assert now.content
        merged = changed(now.content, title=title)
        self.clock.move(2000)
        self.person("merge", "-q", "--no-ff", "-m", "merge side", "side")
        self.person("branch", "-q", "-D", "side")
        newer = self.model.versions[name].pop() if now is not live else None
        self.model.side(side_seconds, name, changed(live.content, title=title), side, "side")
        self.model.tip_time = self.seconds * 1000
        if newer:
            self.model.versions[name].append(newer)
            self.model.commit(self.seconds, name, merged, self.person("rev-parse", "HEAD"), "merge side")

    def staged(self) -> list[str]:
        """The documents that a commit would change now."""
        paths = self.person("diff", "--cached", "--name-only", "--no-renames", "-z").split("\0")
        return [Path(path).stem for path in paths if path]

    @property
    def seconds(self) -> int:
        return self.clock.now // 1000

    def person_commits(self, message: str) -> str:
        self.person("commit", "-q", "-m", message)
        return self.person("rev-parse", "HEAD")

    def person(self, *args: str) -> str:
        """Plain git at the clock's time; tried again, as a person would, while gitmem holds the index."""
        date = {"GIT_AUTHOR_DATE": f"{self.seconds} +0000", "GIT_COMMITTER_DATE": f"{self.seconds} +0000"}
        deadline = time.monotonic() + 10
        while True:
            try:
                return git(self.repository, *args, env=date)
            except AssertionError as error:
                if "index.lock" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    # What must hold

    def check_document(self, handle: int, name: str) -> None:
        """Read, history and old versions of one document."""
        notes, versions = self.notes(handle), self.model.versions.get(name)
        if not versions:
            with pytest.raises(gitmem.NotFoundError):
                notes.history(name)
            return
        found: list[Version] = []
        cursor = None
        while True:
            page = notes.history(name, cursor=cursor)
            assert len(page.versions) <= 50
            found += page.versions
            cursor = page.next_cursor
            if cursor is None:
                break
        shown = [(v.revision, v.operation, v.title, v.bytes, v.updated_at, v.writer, v.message) for v in found]
        assert shown == [as_version(version) for version in reversed(versions)]
        live = self.model.live(name)
        if live and live.content:
            read = notes.read(name)
            assert (read.revision, content_of(read)) == (live.revision, live.content)
        else:
            with pytest.raises(gitmem.NotFoundError):
                notes.read(name)

    @rule(handle=handles, name=documents, older=st.integers(0, 70), newer=back, digits=st.integers(12, 40))
    def look_back(self, handle: int, name: str, older: int, newer: int, digits: int) -> None:
        """Old versions, by shortened revisions too, and what differs between them."""
        if name not in self.model.versions:
            return
        notes, old, new = self.notes(handle), self.version(name, older), self.version(name, newer)
        assert (notes.diff(name, old.revision, new.revision) == "") == (old.content == new.content)
        if old.content:
            found = notes.read(name, at=old.revision[:digits])
            assert content_of(found) == old.content
            assert (found.revision, found.updated_at) == (old.revision, to_rfc3339(old.updated))
            assert (found.writer, found.max_bytes) == (old.writer, self.model.limit)
        else:
            with pytest.raises(gitmem.NotFoundError):
                notes.read(name, at=old.revision)
        self.check_document(handle, name)

    @invariant()
    def listings_agree(self) -> None:
        expected = self.model.listing()
        for handle in range(self.writers):
            assert listing(self.notes(handle)) == expected

    def teardown(self) -> None:
        try:
            for store in self.stores:
                store.close()
            self.stores = [self._opened()]
            self.writers = 1
            self.listings_agree()
            for name in THERE + NEW:
                self.check_document(0, name)
            found = doctor.examine(self.environment(0))
            assert not found, found
            self.stores[0].close()
            dirty = [line[3:].strip('"') for line in self.person("status", "--porcelain", "-uall").splitlines()]
            assert {Path(path).stem for path in dirty} <= self.model.pending.keys(), dirty
            assert fsck(self.repository) == ""
        finally:
            for store in self.stores:
                store.close()


def outcome(expect: Callable[[], Written]) -> tuple[Written | None, ErrorCode | None]:
    try:
        return expect(), None
    except Refused as refused:
        return None, refused.code


def listing(notes: Documents) -> list[DocumentInfo]:
    """All pages of a list."""
    found: list[DocumentInfo] = []
    cursor = None
    while True:
        page = notes.list(cursor=cursor)
        assert len(page.documents) <= 50
        found += page.documents
        cursor = page.next_cursor
        if cursor is None:
            return found


def content_of(document: Document) -> Content:
    return Content(document.title, document.summary, document.agent_writes, document.text)


def as_version(version: Written) -> tuple[object, ...]:
    content = version.content
    return (
        version.revision,
        version.operation,
        content.title if content else "",
        len(content.text.encode()) if content else 0,
        to_rfc3339(version.updated),
        version.writer,
        version.message,
    )


def by_hand(content: Content) -> bytes:
    """A document as a person might write it: other key order, a plain string, defaults left out."""
    value = {"text": content.text, "title": content.title}
    if content.summary:
        value["summary"] = content.summary
    if content.agent_writes != "enabled":
        value["agentWrites"] = content.agent_writes
    return json.dumps(value).encode()


@pytest.fixture(scope="session")
def start_states(tmp_path_factory: pytest.TempPathFactory) -> StartStates:
    return StartStates(tmp_path_factory.mktemp("start"))


def run(start: StartState, work: Path, writers: int, **options: Any) -> None:
    case = type("Machine", (Machine,), {"start": start, "writers": writers, "work": work})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(case, settings=settings(deadline=None, suppress_health_check=checks, **options))


@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("state", ["few", "brink", "split", "deep"])
def test_the_library_agrees_with_the_model(start_states: StartStates, tmp_path: Path, state: str, writers: int) -> None:
    run(start_states.get(state), tmp_path, writers, max_examples=8, stateful_step_count=30, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("state", ["few", "brink", "split", "deep"])
def test_the_library_agrees_with_the_model_at_length(
    start_states: StartStates, tmp_path: Path, state: str, writers: int
) -> None:
    run(start_states.get(state), tmp_path, writers, max_examples=200, stateful_step_count=50)
