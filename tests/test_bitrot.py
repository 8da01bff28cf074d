"""Bit rot: whatever file is damaged, what is told is right or "damaged", doctor finds it, and the rest goes on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import doctor
from tests import rot
from tests.rot import DERIVED, KINDS, Prober, Sound
from tests.support import fsck


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    return rot.sound_store(tmp_path_factory.mktemp("sound") / "store")


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    with Prober() as running:
        yield running


def answers(sound: Sound, told: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], object]]:
    """Each thing that was tried: what it was, the answer, and the right answer."""
    for i, versions in sound.documents.items():
        yield f"read {i}", told["read"][i], versions[0].to_json()
        yield f"history {i}", told["history"][i], [version.revision for version in versions]
        yield f"save {i}", told["saved"][i], versions[0].text + "!"
        for version in versions:
            yield f"read {i} at {version.revision}", told["old"][i][version.revision], version.text
    yield "list", told["list"], sorted(sound.documents)
    yield "sessions", told["sessions"], sorted(sound.sessions)
    yield "create", told["created"], "new"


def check(sound: Sound, told: dict[str, Any], damaged: Path, place: Path) -> None:
    """The promises. Only what SQLite holds may be wrong: doctor says so, and nothing depends on it."""
    derived = any(damaged.match(pattern) for pattern in DERIVED)
    wrong = []
    for what, answer, right in answers(sound, told):
        if "is" in answer:
            if answer["is"] != right and not derived:
                wrong.append((what, answer, right))
        elif "damaged" not in answer or not answer["damaged"] or answer["damaged"] not in answer["message"]:
            wrong.append((what, answer, right))
    assert wrong == []
    assert told["gone"].get("refused", "damaged") in ("not_found", "damaged")
    if derived:
        for i, versions in sound.documents.items():
            assert told["read"][i]["is"]["text"] == versions[0].text
        assert told["created"] == {"is": "new"}
    elif not told["findings"]:
        # Doctor is silent only where all is well.
        assert all("is" in answer for _, answer, _ in answers(sound, told)), damaged
        assert fsck(place / "bot/development") == fsck(place / "bot/control.git") == ""
    if damaged.match("objects/??/*"):
        name = damaged.parent.name + damaged.name
        assert any(name in finding["subject"] for finding in told["findings"]), told["findings"]
        unread = [i for i in sound.documents if "damaged" in told["read"][i]]
        assert len(unread) <= 1, "one object is the newest text of one document at most"
        assert all(told["read"][i]["damaged"] == name for i in unread)


def rotted(sound: Sound, prober: Prober, kind: str, seed: int, place: Path) -> None:
    damaged = rot.spoilt(sound, kind, seed, place)
    try:
        check(sound, prober.probe(place, sound), damaged, place)
    except AssertionError as error:
        error.add_note(f"{rot.DAMAGE[seed % 4].__name__} {damaged}, seed {seed}")
        raise
    finally:
        shutil.rmtree(place)


def test_nothing_is_found_where_nothing_is_damaged(sound: Sound, prober: Prober, tmp_path: Path) -> None:
    place = shutil.copytree(sound.folder, tmp_path / "copy")
    told = prober.probe(place, sound)
    assert told["findings"] == []
    assert all(answer == {"is": right} for _, answer, right in answers(sound, told))
    assert told["gone"]["refused"] == "not_found"


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file(kind: str, sound: Sound, prober: Prober, tmp_path: Path) -> None:
    for seed in range(4):
        rotted(sound, prober, kind, seed, tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(4, 104, 20))
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_files(kind: str, start: int, sound: Sound, prober: Prober, tmp_path: Path) -> None:
    for seed in range(start, start + 20):
        rotted(sound, prober, kind, seed, tmp_path / "copy")


# The indexes, which SQLite does not check


def altered(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def index(environment: gitmem.Environment, notes: gitmem.Documents) -> Path:
    """The index of a closed environment with the document "a" of two versions."""
    notes.replace("a", text="two", if_match=notes.create("a", title="A", text="one").revision)
    environment.close()
    return Path(environment.folder) / ".git/gitmem/index.sqlite"


@pytest.mark.parametrize("rejected", [[], ["DROP TABLE rejected"]], ids=["a row", "a table too"])
def test_a_document_that_the_index_forgot_is_not_taken_for_missing(
    environment: gitmem.Environment, notes: gitmem.Documents, index: Path, rejected: list[str]
) -> None:
    altered(index, "DELETE FROM documents", *rejected)
    assert notes.read("a").text == "two"
    environment.close()
    altered(index, "DELETE FROM documents", *rejected)
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.create("a", title="Again")
    environment.close()
    altered(index, "DELETE FROM documents", *rejected)
    revision = notes.history("a").versions[0].revision
    environment.close()
    altered(index, "DELETE FROM documents", *rejected)
    assert notes.replace("a", text="three", if_match=revision).text == "three"


def test_a_deleted_id_that_the_index_forgot_stays_reserved(
    environment: gitmem.Environment, notes: gitmem.Documents, index: Path
) -> None:
    notes.delete("a", if_match=notes.read("a").revision)
    environment.close()
    altered(index, "DELETE FROM documents")
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.create("a", title="Again")


def test_a_blob_that_the_index_names_wrongly_is_looked_up_in_git(
    environment: gitmem.Environment, notes: gitmem.Documents, index: Path
) -> None:
    altered(index, "UPDATE documents SET blob = zeroblob(20)")
    assert notes.read("a").text == "two"


def test_a_table_that_cannot_be_read_is_made_anew(
    environment: gitmem.Environment, notes: gitmem.Documents, index: Path
) -> None:
    altered(index, "DROP TABLE versions")
    assert [version.operation for version in notes.history("a").versions] == ["replace", "create"]


def test_doctor_sees_an_index_of_sqlite_that_lies(
    environment: gitmem.Environment, notes: gitmem.Documents, index: Path
) -> None:
    with closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'saves')"
            " WHERE name = 'documents_recent'"
        )
    assert "index" in {finding.check for finding in doctor.examine(environment)}
    doctor.repair(environment)
    assert [document.id for document in notes.list().documents] == ["a"]


# The index of sessions


@pytest.fixture
def session_index(store: gitmem.Store, environment: gitmem.Environment) -> Path:
    environment.sessions.create(agent="tutor", memory={})
    environment.sessions.create(agent="tutor", memory={})
    assert len(environment.sessions.list().sessions) == 2
    store.close()
    return Path(store.folder) / "bot/control.git/gitmem/sessions.sqlite"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE state SET tree = zeroblob(20)",
        "UPDATE state SET tree = 'text'",
        "UPDATE state SET tree = zeroblob(3)",
        "UPDATE sessions SET record = zeroblob(300)",
        "UPDATE sessions SET record = replace(record, 'tutor', 'other')",
        "UPDATE sessions SET record = 7",
        "UPDATE sessions SET id = 'ses_0'||substr(id, 6)",
        "UPDATE sessions SET blob = zeroblob(20)",
        "DROP TABLE sessions",
    ],
)
def test_a_damaged_index_of_sessions_is_made_anew(
    statement: str, environment: gitmem.Environment, session_index: Path
) -> None:
    before = [session.inspect() for session in environment.sessions]
    environment.control.close()
    altered(session_index, statement)
    assert [session.inspect() for session in environment.sessions] == before


@pytest.mark.findings("control")
@pytest.mark.parametrize("record", [{}, [], {"id": "ses_y", "alias": "development"}, {"id": "ses_x", "alias": 1}])
def test_a_record_that_is_no_session_is_damaged(
    record: object, environment: gitmem.Environment, session_index: Path
) -> None:
    path = ("sessions", "00", "00", "ses_x.json")
    environment.control.commit("by hand", lambda snapshot: (None, {path: record}))
    with pytest.raises(gitmem.DamagedError, match="is not a session"):
        environment.sessions.list()


def test_doctor_sees_what_the_index_of_sessions_leaves_out(
    store: gitmem.Store, environment: gitmem.Environment, session_index: Path
) -> None:
    before = [session.id for session in environment.sessions]
    store.close()
    altered(session_index, "DELETE FROM sessions WHERE id = (SELECT MAX(id) FROM sessions)")
    (finding,) = doctor.examine(store)
    assert (finding.check, finding.subject) == ("index", "bot/control.git: sessions.sqlite")
    (mended,) = doctor.repair(store)
    assert mended.check == "index"
    assert [session.id for session in environment.sessions] == before


def test_making_the_index_of_sessions_reports_its_progress(store: gitmem.Store, session_index: Path) -> None:
    session_index.unlink()
    seen: list[tuple[str, int, int | None]] = []
    settings = gitmem.Settings(progress=lambda what, done, total: seen.append((what, done, total)))
    with gitmem.open_store(store.folder, settings=settings) as other:
        assert len(other.project("bot").environment().sessions.list().sessions) == 2
    assert ("reading sessions", 0, None) in seen
