"""Plain git merges documents as gitmem does: merge, rebase, cherry-pick, revert, stash."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import gitmem
from gitmem.codec import Content, decode, encode
from gitmem.mergedriver import Outcome, merge_files
from tests.hazards import file_of, git_dir, status
from tests.support import clean_environment, git, git_fails
from tests.support import gitmem as run

BASE = Content("Title", "Summary", "enabled", "1\n2\n3\n4\n5")
OURS = Content("Ours", "Summary", "enabled", "1!\n2\n3\n4\n5")
THEIRS = Content("Title", "Theirs", "disabled", "1\n2\n3\n4\n5\n6")
MERGED = Content("Ours", "Theirs", "disabled", "1!\n2\n3\n4\n5\n6")


def commit(environment: gitmem.Environment, content: Content | bytes, message: str = "by hand") -> None:
    """Commit what the document "a" holds with plain git."""
    file_of(environment, "a").write_bytes(content if isinstance(content, bytes) else encode(content))
    git(environment.folder, "add", "notes/a.json")
    git(environment.folder, "commit", "-qm", message)


def content(environment: gitmem.Environment) -> Content | None:
    return decode(file_of(environment, "a").read_bytes(), "a")


@pytest.fixture
def two_sides(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Environment:
    """Branches main and side that changed the document "a" in different ways; main is checked out."""
    notes.create("a", title=BASE.title, summary=BASE.summary, text=BASE.text)
    environment.close()
    git(environment.folder, "checkout", "-qb", "side")
    commit(environment, THEIRS, "theirs")
    git(environment.folder, "checkout", "-q", "main")
    commit(environment, OURS, "ours")
    return environment


WAYS = {
    "merge": [("merge", "-q", "--no-edit", "side")],
    "cherry-pick": [("cherry-pick", "side")],
    "rebase": [("rebase", "-q", "main", "side"), ("checkout", "-q", "main"), ("merge", "-q", "side")],
    "stash": [
        ("checkout", "-q", "side"), ("reset", "-q", "--soft", "HEAD~1"), ("stash",), ("checkout", "-q", "main"),
        ("stash", "pop"), ("commit", "-qam", "popped"),
    ],
    "pull": [("pull", "-q", "--no-rebase", "--no-edit", ".", "side")],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_fields_and_lines_of_both_sides_come_together(
    two_sides: gitmem.Environment, notes: gitmem.Documents, way: str
) -> None:
    for command in WAYS[way]:
        git(two_sides.folder, *command)
    assert content(two_sides) == MERGED
    found = notes.read("a")
    assert (found.title, found.summary, found.agent_writes, found.text) == tuple(
        getattr(MERGED, name) for name in ("title", "summary", "agent_writes", "text")
    )
    assert found.writer.kind == "owner"
    two_sides.close()
    assert status(two_sides) == ""


def test_a_revert_undoes_one_save_and_keeps_the_later_ones(
    environment: gitmem.Environment, notes: gitmem.Documents
) -> None:
    made = notes.create("a", title="A", text="1\n2\n3\n4\n5")
    wrong = notes.replace("a", text="1\nwrong\n3\n4\n5", if_match=made.revision)
    later = notes.replace("a", text="1\nwrong\n3\n4\n5\n6", if_match=wrong.revision)
    notes.patch("a", agent_writes="disabled", if_match=later.revision)
    environment.close()
    git(environment.folder, "revert", "--no-edit", wrong.revision)
    found = notes.read("a")
    assert (found.text, found.agent_writes) == ("1\n2\n3\n4\n5\n6", "disabled")
    assert [version.operation for version in notes.history("a").versions][:2] == ["edit", "freeze"]


def test_what_cannot_merge_has_markers_just_where_it_is_and_either_choice_is_a_document(
    two_sides: gitmem.Environment, notes: gitmem.Documents
) -> None:
    ours = Content("Ours", "Summary", "enabled", "1!\n2\n3\n4\nours\nand more")
    commit(two_sides, ours)
    before = notes.read("a")
    two_sides.close()
    git(two_sides.folder, "checkout", "-q", "side")
    commit(two_sides, Content("Theirs", "Summary", "disabled", "1\n2\n3\n4\ntheirs"))
    git(two_sides.folder, "checkout", "-q", "main")
    git_fails(two_sides.folder, "merge", "side")
    assert status(two_sides) == "UU notes/a.json"
    marked = file_of(two_sides, "a").read_text()
    assert marked == (
        '{\n<<<<<<< ours\n  "title": "Ours",\n=======\n  "title": "Theirs",\n>>>>>>> theirs\n'
        '  "summary": "Summary",\n  "agentWrites": "disabled",\n  "text": [\n    "1!",\n    "2",\n    "3",\n    "4",\n'
        '<<<<<<< ours\n    "ours",\n    "and more"\n=======\n    "theirs"\n>>>>>>> theirs\n  ]\n}\n'
    )
    shown = git(two_sides.folder, "diff").splitlines()
    assert {"++<<<<<<< ours", " +title: Ours", "+ title: Theirs", " +and more", "++>>>>>>> theirs"} <= set(shown)

    assert notes.read("a") == before  # markers are no version
    chosen = {kind: chosen_of(marked, kind) for kind in ("ours", "theirs")}
    assert decode(chosen["ours"].encode(), "a") == Content("Ours", "Summary", "disabled", "1!\n2\n3\n4\nours\nand more")
    assert decode(chosen["theirs"].encode(), "a") == Content("Theirs", "Summary", "disabled", "1!\n2\n3\n4\ntheirs")
    file_of(two_sides, "a").write_text(chosen["theirs"])
    git(two_sides.folder, "commit", "-qam", "merged")
    assert notes.read("a").title == "Theirs"


def chosen_of(marked: str, kind: str) -> str:
    """A file with markers once somebody has chosen one side of each."""
    kept, side = [], None
    for line in marked.split("\n"):
        if line.startswith(("<" * 7, "=" * 7, ">" * 7)):
            side = {"<": "ours", "=": "theirs", ">": None}[line[0]]
        elif side in (None, kind):
            kept.append(line)
    return "\n".join(kept)


@pytest.mark.parametrize("deleting", ["ours", "theirs"])
def test_a_deletion_wins_and_the_edit_stays_in_history(
    environment: gitmem.Environment, notes: gitmem.Documents, deleting: str
) -> None:
    made = notes.create("a", title="A", text="one")
    environment.close()
    git(environment.folder, "branch", "side")
    tombstone = b'{"deleted": true}\n'
    if deleting == "ours":
        notes.delete("a", if_match=made.revision)
        environment.close()
        git(environment.folder, "checkout", "-q", "side")
        commit(environment, Content("A", "", "enabled", "edited"))
        git(environment.folder, "checkout", "-q", "main")
    else:
        git(environment.folder, "checkout", "-q", "side")
        commit(environment, tombstone)
        git(environment.folder, "checkout", "-q", "main")
        commit(environment, Content("A", "", "enabled", "edited"))
    done = subprocess.run(
        ["git", "-C", environment.folder, "-c", "user.name=P", "-c", "user.email=p@x", "merge", "--no-edit", "side"],
        env=clean_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "notes/a.json was deleted on one side" in done.stderr + done.stdout
    assert file_of(environment, "a").read_bytes() == tombstone
    with pytest.raises(gitmem.NotFoundError):
        notes.read("a")
    texts = {notes.read("a", at=v.revision).text for v in notes.history("a").versions if v.operation != "delete"}
    assert "edited" in texts
    environment.close()


def test_an_id_taken_on_both_sides_is_a_conflict(environment: gitmem.Environment, notes: gitmem.Documents) -> None:
    environment.close()
    git(environment.folder, "checkout", "-qb", "side")
    commit(environment, THEIRS)
    git(environment.folder, "checkout", "-q", "main")
    commit(environment, OURS)
    git_fails(environment.folder, "merge", "side")
    marked = file_of(environment, "a").read_text()
    assert decode(chosen_of(marked, "ours").encode(), "a") == OURS
    assert decode(chosen_of(marked, "theirs").encode(), "a") == THEIRS
    git(environment.folder, "merge", "--abort")


def test_a_clone_without_the_driver_merges_by_lines(two_sides: gitmem.Environment, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", two_sides.folder, "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "-q", "--detach", "main~1")
    (clone / "notes" / "a.json").write_bytes(encode(Content("Title", "Summary", "enabled", "1\n2\n3\n4\nfive")))
    git(clone, "commit", "-qam", "here")
    git(clone, "merge", "-q", "--no-edit", "main")
    merged = decode((clone / "notes" / "a.json").read_bytes(), "a")
    assert merged == Content("Ours", "Summary", "enabled", "1!\n2\n3\n4\nfive")


@pytest.mark.parametrize("gone", ["no gitmem", "no python", "killed", "no document"])
def test_without_the_driver_git_merges_by_lines_or_says_that_it_could_not(
    two_sides: gitmem.Environment, gone: str
) -> None:
    driver = git(two_sides.folder, "config", "merge.gitmem.driver")
    python, script = driver.split()[0], next(word for word in driver.split() if word.endswith("__main__.py"))
    if gone == "no document":
        broken = encode(OURS).replace(b'"Ours"', b"Ours")
        commit(two_sides, broken)
    else:
        instead = {"no gitmem": (script, "/nowhere/__main__.py"), "no python": (python, "/nowhere/python")}
        old, new = instead.get(gone, (f"{python} -I -S {script}", "sh -c 'kill -9 $$'"))
        git(two_sides.folder, "config", "merge.gitmem.driver", driver.replace(old, new))
    if gone == "killed":
        git_fails(two_sides.folder, "merge", "side")
        assert decode(git(two_sides.folder, "show", "main:notes/a.json").encode(), "a") == OURS
        git(two_sides.folder, "reset", "-q", "--hard")
    else:
        git_fails(two_sides.folder, "merge", "side")  # neighbouring lines of the file
        assert file_of(two_sides, "a").read_text().count("<<<<<<< ours") == 1
        git(two_sides.folder, "merge", "--abort")
    git(two_sides.folder, "reset", "-q", "--hard", "main~1")


# The driver alone

LONG = "x" * 9_000
CASES: dict[str, tuple[bytes, bytes, bytes, Outcome, bytes | None]] = {
    "only ours": (encode(BASE), encode(OURS), encode(BASE), Outcome.MERGED, encode(OURS)),
    "only theirs": (encode(BASE), encode(BASE), encode(THEIRS), Outcome.MERGED, encode(THEIRS)),
    "both": (encode(BASE), encode(OURS), encode(THEIRS), Outcome.MERGED, encode(MERGED)),
    "another form": (encode(BASE), json.dumps(json.loads(encode(BASE))).encode(), encode(BASE), Outcome.MERGED, None),
    "CRLF": (encode(BASE), encode(OURS).replace(b"\n", b"\r\n"), encode(THEIRS), Outcome.MERGED, encode(MERGED)),
    "not json": (encode(BASE), b"{", encode(THEIRS), Outcome.NO_DOCUMENT, b"{"),
    "theirs not json": (encode(BASE), encode(OURS), b"\0", Outcome.NO_DOCUMENT, encode(OURS)),
    "no base": (b"", encode(OURS), encode(OURS), Outcome.MERGED, encode(OURS)),
    "both too long together": (
        encode(Content("T", "", "enabled", "a\n\n\nb")),
        encode(Content("T", "", "enabled", f"{LONG}\n\n\nb")),
        encode(Content("T", "", "enabled", f"a\n\n\n{LONG}")),
        Outcome.CONFLICT,
        None,
    ),
    "too large": (encode(BASE), b'"' + b"x" * 600_000 + b'"', encode(THEIRS), Outcome.NO_DOCUMENT, None),
}


@pytest.mark.parametrize("case", CASES)
def test_three_files_become_one(tmp_path: Path, case: str) -> None:
    *files, outcome, expected = CASES[case]
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    assert merge_files(*map(str, paths), "a") is outcome
    if expected is not None:
        assert paths[1].read_bytes() == expected
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_lines_that_look_like_markers_are_text(tmp_path: Path) -> None:
    base = Content("T", "", "enabled", "<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n\u2028\x85\x00")
    mine = Content("T", "", "enabled", base.text.replace("1", "one"))
    other = Content("T", "", "enabled", base.text.replace("1", "eins"))
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, side in zip(paths, (base, mine, other), strict=True):
        path.write_bytes(encode(side))
    assert merge_files(*map(str, paths), "a", 20) is Outcome.CONFLICT
    marked = paths[1].read_bytes().decode()
    assert [line for line in marked.split("\n") if not line.startswith((" ", "{", "}"))] == [
        "<" * 20 + " ours", "=" * 20, ">" * 20 + " theirs", ""
    ]  # fmt: skip
    assert chosen_of(marked, "ours").encode() == encode(mine)
    assert chosen_of(marked, "theirs").encode() == encode(other)


def test_the_command_ends_with_gits_status(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]

    def merged(*contents: Content | bytes) -> int:
        for path, side in zip(paths, contents, strict=True):
            path.write_bytes(side if isinstance(side, bytes) else encode(side))
        return run("merge-driver", *map(str, paths), "7", "notes/a.json").returncode

    assert merged(BASE, OURS, THEIRS) == 0
    assert decode(paths[1].read_bytes(), "a") == MERGED
    assert merged(b"", OURS, THEIRS) == 1
    assert merged(b"", b"", THEIRS) == 2
    paths[2].unlink()
    assert run("merge-driver", *map(str, paths), "7", "notes/a.json").returncode == 1


def test_a_name_of_any_kind_reaches_the_driver_whole(environment: gitmem.Environment, tmp_path: Path) -> None:
    """Files that are no documents by their name merge as text, and nothing of it is run."""
    odd = 'it\'s $(touch run) "%A" é;.json'
    environment.close()
    place = Path(environment.folder)
    (place / odd).write_text("1\n2\n3\n4\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "odd")
    git(place, "checkout", "-qb", "side")
    (place / odd).write_text("1\n2\n3\n4\n5\n")
    git(place, "commit", "-qam", "side")
    git(place, "checkout", "-q", "main")
    (place / odd).write_text("0\n1\n2\n3\n4\n")
    git(place, "commit", "-qam", "main")
    git(
        place,
        "merge",
        "-q",
        "--no-edit",
        "side",
        env={"GIT_WORK_TREE": str(place), "GIT_DIR": str(git_dir(environment))},
    )
    assert (place / odd).read_text() == "0\n1\n2\n3\n4\n5\n"
    assert not list(tmp_path.rglob("run"))
    git(place, "rm", "-q", odd)
    git(place, "commit", "-qm", "gone")
