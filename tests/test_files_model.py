"""Memory files of three members against a plain dictionary; nobody ever sees what is another's own."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import gitmem
from gitmem import ErrorCode, GitmemError, doctor, export
from gitmem.filepaths import SCOPES, Scope
from gitmem.files import ANYTHING, Expected, Files, MemoryFile, Role
from tests.support import git

ROLES: Final[dict[str, Role]] = {"anna@example.org": "owner", "bob": "admin", "Bob": "member"}
PATHS: Final = {
    "MEMORY.md": "MEMORY.md",
    "memory": "MEMORY.md",
    "note": "note.md",
    "memory:/NOTE.md": "note.md",
    "reasons/key/why": "reasons/key/why.md",
}
_serial = itertools.count()
members = st.sampled_from(list(ROLES))
scopes = st.sampled_from(SCOPES)
paths = st.sampled_from(list(PATHS))
WHICH: Final = ("anything", "nothing", "newest", "older", "another's")
expectations = st.sampled_from(WHICH)


def mark(member: str) -> str:
    """What stands in every text that is a member's own, and nowhere else."""
    return f"<{list(ROLES).index(member)}-own>"


@dataclass
class Kept:
    """A file as the model knows it: each revision with its text, None for a removal."""

    revisions: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def text(self) -> str | None:
        return self.revisions[-1][1] if self.revisions else None

    @property
    def revision(self) -> str | None:
        return self.revisions[-1][0] if self.text is not None else None


class Refused(Exception):
    """The model refuses with this code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code)
        self.code = code


class Machine(RuleBasedStateMachine):
    """A project with its model."""

    work: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = self.work / f"store{next(_serial)}"
        self.store = gitmem.open_store(self.folder, create=True, settings=gitmem.Settings(durable=False))
        self.store.project("bot").create()
        self.kept: dict[tuple[str, str], Kept] = {}
        self.off: set[str] = set()

    def files(self, member: str) -> Files:
        return self.store.project("bot").files(member=member, role=ROLES[member])

    def of(self, member: str, scope: Scope, path: str) -> Kept:
        return self.kept.setdefault((member if scope == "personal" else "team", PATHS.get(path, path)), Kept())

    # What members do

    @rule(member=members, scope=scopes, path=paths, which=expectations, again=st.booleans())
    def put(self, member: str, scope: Scope, path: str, which: str, again: bool) -> None:
        kept = self.of(member, scope, path)
        old = kept.text
        text = old if again and old is not None else self.new_text(member, scope)
        expected = self.expected(kept, which)

        def expect() -> bool:
            self.check_write(member, scope, kept, expected)
            return text != old

        updated, file = self.same(
            member, expect, lambda files: files.put(scope, path, text, expected_revision_id=expected)
        )
        self.check_written(member, kept, updated, file, text)

    @rule(member=members, scope=scopes, path=paths, which=expectations, back=st.integers(0, 4))
    def restore(self, member: str, scope: Scope, path: str, which: str, back: int) -> None:
        kept = self.of(member, scope, path)
        expected = self.expected(kept, which)
        revision, text = kept.revisions[-1 - back % len(kept.revisions)] if kept.revisions else ("0" * 40, None)
        before = kept.text

        def expect() -> bool:
            self.check_role(member, scope)
            if text is None:
                raise Refused(ErrorCode.NOT_FOUND)
            self.check_write(member, scope, kept, expected)
            return text != before

        updated, file = self.same(
            member, expect, lambda files: files.restore(scope, path, revision, expected_revision_id=expected)
        )
        self.check_written(member, kept, updated, file, text)

    @rule(member=members, scope=scopes, path=paths, which=expectations)
    def remove(self, member: str, scope: Scope, path: str, which: str) -> None:
        kept = self.of(member, scope, path)
        expected = self.expected(kept, which)
        if expected is None:
            return

        def expect() -> bool:
            self.check_role(member, scope)
            if kept.text is None:
                raise Refused(ErrorCode.NOT_FOUND)
            self.check_write(member, scope, kept, expected)
            return True

        removed, _ = self.same(member, expect, lambda files: files.remove(scope, path, expected_revision_id=expected))
        if removed:
            revision = self.files(member).history(scope, path).revisions[0].revision_id
            kept.revisions.append((revision, None))

    @rule(member=members, on=st.booleans())
    def switch(self, member: str, on: bool) -> None:
        self.files(member).enable(on)
        self.off = self.off - {member} if on else self.off | {member}

    @rule(member=members, scope=scopes, path=paths, other=members)
    def look_for_what_is_anothers(self, member: str, scope: Scope, path: str, other: str) -> None:
        """Every operation that takes a revision, with those of another's file."""
        for revision, _ in self.of(other, "personal", path).revisions:
            if member != other:
                self.refused(member, lambda files, revision=revision: files.read(scope, path, at=revision))
                self.refused(member, lambda files, revision=revision: files.diff(scope, path, revision))
                self.refused(member, lambda files, revision=revision: files.restore(scope, path, revision))

    @rule()
    def reopen_without_the_index(self) -> None:
        self.store.close()
        for index in self.folder.rglob("index.sqlite*"):
            index.unlink()
        self.store = gitmem.open_store(self.folder, settings=gitmem.Settings(durable=False))

    # What each sees

    @rule(member=members)
    def look(self, member: str) -> None:
        files = self.files(member)
        for scope in SCOPES:
            live = {}
            for path in set(PATHS.values()):
                kept = self.of(member, scope, path)
                if kept.text is None:
                    self.refused(member, lambda files, scope=scope, path=path: files.read(scope, path))
                else:
                    found = self.checked(member, files.read(scope, path))
                    assert (found.content, found.revision_id, found.updated) == (kept.text, kept.revision, False)
                    live[path] = found
                if kept.revisions:
                    told = self.checked(member, files.history(scope, path)).revisions
                    assert [one.revision_id for one in reversed(told)] == [revision for revision, _ in kept.revisions]
                    self.checked(member, files.diff(scope, path))
            listed = self.checked(member, files.list(scope)).files
            assert {info.path: info.revision_id for info in listed} == {
                path: file.revision_id for path, file in live.items()
            }
        expected = [self.of(member, "team", "MEMORY.md").text]
        expected += [] if member in self.off else [self.of(member, "personal", "MEMORY.md").text]
        context = self.checked(member, files.context())
        assert [file.content for file in context] == [text for text in expected if text is not None]
        assert files.is_enabled() == (member not in self.off)

    # Inside

    def new_text(self, member: str, scope: Scope) -> str:
        return f"{mark(member) if scope == 'personal' else 'ours'} {next(_serial)}\n"

    def expected(self, kept: Kept, which: str) -> str | Expected | None:
        match which:
            case "anything":
                return ANYTHING
            case "nothing":
                return None
            case "newest":
                return kept.revision
            case "older":
                return kept.revisions[0][0] if kept.revisions else "0" * 40
        others = (other.revision for other in self.kept.values() if other is not kept and other.revision)
        return next(others, "0" * 40)

    def check_role(self, member: str, scope: Scope) -> None:
        if scope == "team" and ROLES[member] == "member":
            raise Refused(ErrorCode.FORBIDDEN)

    def check_write(self, member: str, scope: Scope, kept: Kept, expected: str | Expected | None) -> None:
        self.check_role(member, scope)
        if scope == "personal" and member in self.off:
            raise Refused(ErrorCode.MEMORY_DISABLED)
        if not isinstance(expected, Expected) and expected != kept.revision:
            raise Refused(ErrorCode.REVISION_CONFLICT)

    def same(self, member: str, expect: Callable[[], bool], call: Callable[[Files], Any]) -> tuple[bool, Any]:
        """Whether the model changes, and what the library answers; or the same refusal by both."""
        changes, code = outcome(expect)
        if code:
            assert self.refused(member, call) == code
            return False, None
        return changes, self.checked(member, call(self.files(member)))

    def check_written(self, member: str, kept: Kept, updated: bool, file: MemoryFile | None, text: str | None) -> None:
        if file is None:
            return
        assert (file.content, file.updated) == (text, updated)
        if updated:
            assert file.updated_by == member
            kept.revisions.append((file.revision_id, text))
        assert file.revision_id == kept.revision

    def refused(self, member: str, call: Callable[[Files], Any]) -> ErrorCode:
        with pytest.raises(GitmemError) as caught:
            call(self.files(member))
        self.checked(member, (caught.value.message, caught.value.data))
        return caught.value.code

    def checked(self, member: str, seen: Any) -> Any:
        """What a member sees, in which nothing is another's own."""
        for other in ROLES:
            assert other == member or mark(other) not in repr(seen)
        return seen

    def teardown(self) -> None:
        try:
            for member in ROLES:
                self.look(member)
            self.check_places()
        finally:
            self.store.close()
            shutil.rmtree(self.folder)

    def check_places(self) -> None:
        """A member's own text lies in their own repository and nowhere else: no object, index or export has it."""
        project = self.store.project("bot")
        notes = gitmem.define_memory(id="notes", description="Decisions.")
        environment = project.environment()
        environment.deploy(agent="tutor", memories=[notes])
        export.export(environment, str(self.folder / "export"))
        found = doctor.examine(self.store)
        assert not found, found
        own = {member: Path(project.personal_files(member).folder) for member in ROLES}
        self.store.close()
        for git_dir in [*self.folder.rglob(".git"), *self.folder.rglob("control.git")]:
            objects = git(git_dir, "cat-file", "--batch-all-objects", "--batch")
            self.check_place(git_dir, objects, own)
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = Path(folder, name)
                self.check_place(path, path.read_bytes().decode("latin-1"), own)

    def check_place(self, path: Path, text: str, own: dict[str, Path]) -> None:
        for member, folder in own.items():
            assert mark(member) not in text or path.is_relative_to(folder), path


def outcome(expect: Callable[[], bool]) -> tuple[bool, ErrorCode | None]:
    try:
        return expect(), None
    except Refused as refused:
        return False, refused.code


def run(work: Path, **options: Any) -> None:
    case = type("Machine", (Machine,), {"work": work})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(case, settings=settings(deadline=None, suppress_health_check=checks, **options))


def test_each_member_sees_what_the_model_says_and_nothing_of_others(tmp_path: Path) -> None:
    run(tmp_path, max_examples=6, stateful_step_count=30, derandomize=True)


@pytest.mark.slow
def test_each_member_sees_what_the_model_says_at_length(tmp_path: Path) -> None:
    run(tmp_path, max_examples=150, stateful_step_count=50)
