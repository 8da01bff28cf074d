"""The versions of a document: history, reading at a revision, diff."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitmem
from gitmem import Documents
from tests.support import git
from tests.workshop import Calls, ManualClock, limited, tip


def test_read_at_a_revision(notes: Documents) -> None:
    first = notes.create("workshop", title="First", text="one")
    second = notes.replace("workshop", text="two", if_match=first.revision)
    notes.create("other", title="Other")
    assert notes.read("workshop", at=first.revision) == first
    assert notes.read("workshop", at=first.revision[:7]) == first
    assert notes.read("workshop", at=second.revision[:39]) == second


@pytest.mark.parametrize(
    "revision", ["", "123456", "HEAD", "main", "main~1", "--output=x", "0" * 41, "0000000\n", "G" * 40]
)
def test_what_is_not_a_revision_is_refused(notes: Documents, revision: str) -> None:
    made = notes.create("workshop", title="First")
    calls: Calls = [
        lambda: notes.read("workshop", at=revision),
        lambda: notes.diff("workshop", revision),
        lambda: notes.diff("workshop", made.revision, revision),
        lambda: notes.restore("workshop", revision, if_match=made.revision),
    ]
    for call in calls:
        with pytest.raises(gitmem.InvalidRequestError):
            call()


def test_a_revision_of_another_document_is_not_found(notes: Documents) -> None:
    notes.create("workshop", title="First")
    other = notes.create("other", title="Other")
    for revision in (other.revision, other.revision[:7], "0" * 40):
        with pytest.raises(gitmem.NotFoundError):
            notes.read("workshop", at=revision)
        with pytest.raises(gitmem.NotFoundError):
            notes.diff("workshop", revision)


def test_old_versions_show_todays_limit(environment: gitmem.Environment) -> None:
    notes = limited(environment, 100)
    made = notes.create("workshop", title="Title", text="one")
    notes = limited(environment, 50)
    assert notes.read("workshop", at=made.revision).max_bytes == 50


def test_diff_shows_what_changed(notes: Documents) -> None:
    first = notes.create("workshop", title="First", text="one\ntwo", summary="S")
    second = notes.replace("workshop", text="one\n2", if_match=first.revision)
    third = notes.patch("workshop", title="Third", agent_writes="disabled", if_match=second.revision)
    head = f"--- notes/workshop@{first.revision[:12]}\n+++ notes/workshop@{second.revision[:12]}\n"
    change = "@@ -3,4 +3,4 @@\n agentWrites: enabled\n \n one\n-two\n+2\n"
    assert notes.diff("workshop", first.revision, second.revision) == head + change
    assert notes.diff("workshop", first.revision[:8], second.revision[:8]) == head + change
    newest = notes.diff("workshop")
    assert newest == notes.diff("workshop", second.revision, third.revision) == notes.diff("workshop", second.revision)
    assert "-title: First\n+title: Third\n" in newest
    assert "-agentWrites: enabled\n+agentWrites: disabled\n" in newest
    assert notes.diff("workshop", first.revision, first.revision) == ""


def test_diff_of_a_first_and_of_a_last_version(notes: Documents, environment: gitmem.Environment) -> None:
    made = notes.create("workshop", title="First", text="one")
    assert notes.diff("workshop").startswith("--- notes/workshop@nothing\n")
    assert "+one\n" in notes.diff("workshop")
    notes.delete("workshop", if_match=made.revision)
    assert "-one\n" in notes.diff("workshop")
    assert notes.diff("workshop") == notes.diff("workshop", made.revision, tip(environment))


def test_history_tells_every_version_newest_first(timed: gitmem.Environment, clock: ManualClock) -> None:
    notes = timed.documents("notes")
    first = notes.create("workshop", title="First", text="one")
    clock.move(1)
    second = notes.replace("workshop", text="zwölf", if_match=first.revision)
    notes.create("other", title="Other")
    assert notes.history("workshop").to_json() == {
        "versions": [
            {
                "revision": second.revision,
                "operation": "replace",
                "title": "First",
                "bytes": 6,
                "updatedAt": "2026-09-10T12:00:00.001Z",
                "writer": {"kind": "owner"},
                "message": "replace notes/workshop",
            },
            {
                "revision": first.revision,
                "operation": "create",
                "title": "First",
                "bytes": 3,
                "updatedAt": "2026-09-10T12:00:00.000Z",
                "writer": {"kind": "owner"},
                "message": "create notes/workshop",
            },
        ],
        "nextCursor": None,
    }


def test_history_pages_hold_50_versions(notes: Documents) -> None:
    made = [notes.create("workshop", title="Title", text="0")]
    for number in range(1, 120):
        made.append(notes.replace("workshop", text=str(number), if_match=made[-1].revision))
    revisions, cursor, sizes = [], None, []
    while True:
        page = notes.history("workshop", cursor=cursor)
        sizes.append(len(page.versions))
        revisions += [version.revision for version in page.versions]
        cursor = page.next_cursor
        if cursor is None:
            break
        notes.create(f"between-{len(sizes)}", title="Somebody writes meanwhile")
    assert sizes == [50, 50, 20]
    assert revisions == [document.revision for document in reversed(made)]
    assert notes.read("workshop", at=made[0].revision) == made[0]


def test_history_through_a_merge_shows_each_version_once_and_none_before_its_ancestors(
    timed: gitmem.Environment, clock: ManualClock
) -> None:
    notes, folder = timed.documents("notes"), Path(timed.folder)
    clock.move(3_600_000)  # the first version claims a later time than those made on top of it
    base = notes.create("workshop", title="Base")
    clock.move(-3_600_000)
    dates = {"GIT_COMMITTER_DATE": f"{clock.now // 1000} +0000"}
    git(folder, "checkout", "-q", "-b", "side")
    (folder / "notes/workshop.json").write_text('{"title": "Side"}')
    git(folder, "commit", "-qam", "side", env=dates)
    git(folder, "checkout", "-q", "main")
    (folder / "notes/workshop.json").write_text('{"title": "Main"}')
    git(folder, "commit", "-qam", "main", env=dates)
    git(folder, "merge", "-q", "-s", "ours", "--no-commit", "side", env=dates)
    (folder / "notes/workshop.json").write_text('{"title": "Both"}')
    git(folder, "commit", "-qam", "merge", env=dates)
    versions = notes.history("workshop").versions
    assert [version.title for version in versions] == ["Both", "Main", "Side", "Base"]
    assert versions[-1].revision == base.revision
    assert notes.read("workshop", at=versions[2].revision).title == "Side"
