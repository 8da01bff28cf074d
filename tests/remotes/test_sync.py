"""`gitmem sync`: both sides come to the same history, whatever each did; and what stops it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem.errors import RemoteHistoryError, RemoteRefusedError, RemoteUnreachableError
from tests.cli import Cli
from tests.remotes.hub import bare, hook
from tests.remotes.machines import Machine, pair
from tests.support import git
from tests.workshop import NOTES


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return bare(tmp_path / "hub.git")


@pytest.fixture
def machines(tmp_path: Path, hub: Path) -> Iterator[tuple[Machine, Machine]]:
    one, two = pair(tmp_path, hub)
    yield one, two
    one.store.close()
    two.store.close()


def agree(*machines: Machine) -> None:
    """All machines show the same, from their index and from their files, and plain git sees nothing odd."""
    first = machines[0]
    for machine in machines:
        assert machine.tip == first.tip
        assert machine.revisions() == first.revisions()
        assert machine.texts() == first.texts()
        assert machine.dirt() == ""


def test_a_second_machine_takes_what_the_first_has(machines: tuple[Machine, Machine], hub: Path) -> None:
    one, two = machines
    written = one.write("workshop", "a\nb")
    sent = one.environment.sync()
    assert (sent.sent, sent.received, sent.merged, sent.tip) == (True, 0, False, one.tip)
    assert git(hub, "rev-parse", "main") == one.tip
    got = two.environment.sync("origin")
    assert (got.sent, got.received, got.merged) == (False, 1, False)
    assert two.notes.read("workshop") == written
    assert (two.tree / "notes" / "workshop.json").read_bytes() == (one.tree / "notes" / "workshop.json").read_bytes()
    again = two.environment.sync()
    assert (again.sent, again.received) == (False, 0)
    assert git(two.tree, "rev-parse", "origin/main") == two.tip
    agree(one, two)


def test_different_documents_merge_and_keep_their_revisions(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    mine, theirs = one.write("mine", "of one"), two.write("theirs", "of two")
    one.environment.sync()
    merged = two.environment.sync()
    assert (merged.merged, merged.sent, merged.received) == (True, True, 1)
    one.environment.sync()
    agree(one, two)
    assert one.revisions() == {"mine": mine.revision, "theirs": theirs.revision}
    assert git(one.tree, "log", "-1", "--format=%s%n%an <%ae> %cn").splitlines()[0] == "merge origin"
    assert len(git(one.tree, "rev-list", "--parents", "-1", "main").split()) == 3


def test_one_document_merges_field_by_field_and_line_by_line(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    first = one.write("workshop", "1\n2\n3\n4\n5")
    one.environment.sync()
    two.environment.sync()
    one.notes.patch("workshop", title="Of one", if_match=first.revision)
    one.write("workshop", "1!\n2\n3\n4\n5")
    two.notes.patch("workshop", agent_writes="disabled", if_match=first.revision)
    two.write("workshop", "1\n2\n3\n4\n5!")
    one.environment.sync()
    assert two.environment.sync().conflicts == ()
    one.environment.sync()
    agree(one, two)
    merged = one.notes.read("workshop")
    assert (merged.title, merged.agent_writes, merged.text) == ("Of one", "disabled", "1!\n2\n3\n4\n5!")
    assert merged.revision == one.tip
    assert len(one.notes.history("workshop").versions) == 6


@pytest.mark.slow
def test_a_merge_survives_a_rebuild_of_the_index(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("mine", "of one")
    two.write("theirs", "of two")
    one.environment.sync()
    two.environment.sync()
    revisions = two.revisions()
    two.environment.close()
    for path in (two.tree / ".git" / "gitmem").glob("index.sqlite*"):
        path.unlink()
    assert two.revisions() == revisions


def test_a_deletion_wins_over_an_edit_which_stays_in_the_history(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    first = one.write("workshop", "a")
    one.environment.sync()
    two.environment.sync()
    one.notes.delete("workshop", if_match=first.revision)
    edited = two.write("workshop", "b")
    one.environment.sync()
    done = two.environment.sync()
    assert done.conflicts == ()
    one.environment.sync()
    agree(one, two)
    for machine in machines:
        assert machine.revisions() == {}
        versions = machine.notes.history("workshop").versions
        assert [version.operation for version in versions] == ["delete", "replace", "create"]
        assert machine.notes.history("workshop").versions[1].revision == edited.revision
        with pytest.raises(gitmem.PreconditionFailedError):
            machine.notes.create("workshop", title="again")


@pytest.mark.slow
def test_an_edit_here_does_not_undo_a_deletion_there(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    first = one.write("workshop", "a")
    one.environment.sync()
    two.environment.sync()
    one.write("workshop", "b")
    two.notes.delete("workshop", if_match=first.revision)
    one.environment.sync()
    two.environment.sync()
    one.environment.sync()
    agree(one, two)
    assert [v.operation for v in one.notes.history("workshop").versions] == ["delete", "replace", "create"]


def test_what_people_commit_with_plain_git_comes_along(machines: tuple[Machine, Machine], hub: Path) -> None:
    one, two = machines
    (one.tree / "README.md").write_text("Ours.\n")
    (one.tree / "notes" / "byhand.json").write_text('{"title": "By hand", "text": ["x"]}')
    git(one.tree, "add", ".")
    git(one.tree, "commit", "-q", "-m", "by hand")
    git(one.tree, "push", "-q", "origin", "main")
    two.write("other", "x")
    two.environment.sync()
    assert two.notes.read("byhand").title == "By hand"
    assert (two.tree / "README.md").read_text() == "Ours.\n"
    git(one.tree, "pull", "-q", "origin", "main")
    assert one.notes.read("other").text == "x"
    agree(one, two)
    git(one.tree, "rm", "-q", "README.md", "notes/byhand.json")
    git(one.tree, "commit", "-q", "-m", "gone")
    one.environment.sync()
    two.environment.sync()
    assert not (two.tree / "README.md").exists()
    assert not (two.tree / "notes" / "byhand.json").exists()
    with pytest.raises(gitmem.PreconditionFailedError):
        two.notes.create("byhand", title="again")
    agree(one, two)


def test_hand_edits_are_adopted_before_what_comes_in(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("workshop", "1\n2\n3\n4\n5")
    one.environment.sync()
    two.environment.sync()
    one.write("workshop", "one\n2\n3\n4\n5")
    one.environment.sync()
    path = two.tree / "notes" / "workshop.json"
    path.write_text(path.read_text().replace('"5"', '"five"'))
    two.environment.sync()
    assert two.notes.read("workshop").text == "one\n2\n3\n4\nfive"
    one.environment.sync()
    agree(one, two)


@pytest.mark.slow
def test_an_invalid_hand_edit_is_left_alone(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("workshop", "a")
    one.environment.sync()
    two.environment.sync()
    path = two.tree / "notes" / "workshop.json"
    path.write_text("{ not yet")
    one.write("workshop", "b")
    one.environment.sync()
    two.environment.sync()
    assert two.notes.read("workshop").text == "b"
    assert path.read_text() == "{ not yet"
    git(two.tree, "checkout", "-q", "--", "notes/workshop.json")
    agree(one, two)


@pytest.mark.slow
def test_large_folders_are_split_alike(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    for machine, letter in ((one, "a"), (two, "b")):
        documents = [gitmem.NewDocument(id=f"{letter}{number}", title="x") for number in range(100)]
        assert len(list(machine.notes.create_many(documents))) == 100
    one.environment.sync()
    two.environment.sync()
    one.environment.sync()
    assert len(one.revisions()) == 200
    assert (one.tree / "notes").glob("??/*.json")
    assert not list((one.tree / "notes").glob("*[0-9].json"))
    agree(one, two)


@pytest.mark.slow
def test_a_fresh_machine_that_only_declared_joins_a_memory(tmp_path: Path, hub: Path) -> None:
    one, two = Machine(tmp_path / "one", str(hub)), Machine(tmp_path / "two", str(hub))
    one.environment.deploy(agent="tutor", memories=[NOTES])
    one.write("workshop", "a")
    one.environment.sync()
    two.environment.deploy(agent="tutor", memories=[NOTES])
    two.environment.sync()
    one.environment.sync()
    agree(one, two)
    one.store.close()
    two.store.close()


# What stops a sync


def stops(machine: Machine, kind: type[gitmem.GitmemError], word: str) -> None:
    """A sync must say `word` and change neither refs nor files."""
    before = git(machine.tree, "for-each-ref"), sorted(machine.tree.glob("notes/**/*"))
    with pytest.raises(kind, match=word):
        machine.environment.sync()
    assert (git(machine.tree, "for-each-ref"), sorted(machine.tree.glob("notes/**/*"))) == before


def test_a_rewritten_remote(machines: tuple[Machine, Machine], hub: Path, tmp_path: Path) -> None:
    one, two = machines
    one.write("workshop", "a")
    one.environment.sync()
    two.environment.sync()
    git(one.tree, "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
    git(one.tree, "push", "-q", "--force", "origin", "main")
    rewritten = git(hub, "rev-parse", "main")
    two.write("other", "x")
    stops(two, RemoteHistoryError, "rewritten or rewound")
    git(two.tree, "fetch", "-q", "origin")  # which moves git's own tracking ref
    stops(two, RemoteHistoryError, "rewritten or rewound")
    assert git(hub, "rev-parse", "main") == rewritten


def test_a_rewound_remote(machines: tuple[Machine, Machine], hub: Path) -> None:
    one, _ = machines
    one.write("workshop", "a")
    one.environment.sync()
    git(hub, "update-ref", "refs/heads/main", "main~1")
    stops(one, RemoteHistoryError, "rewound")
    one.environment.remotes.remove("origin")
    one.environment.remotes.add("origin", str(hub))
    assert one.environment.sync().sent


def test_an_emptied_remote(machines: tuple[Machine, Machine], hub: Path) -> None:
    one, _ = machines
    git(hub, "update-ref", "-d", "refs/heads/main")
    stops(one, RemoteHistoryError, "has no main any more")
    git(one.tree, "push", "-q", "origin", "main:other")
    stops(one, RemoteHistoryError, "has no main any more")


def test_a_remote_with_other_branches_only(tmp_path: Path, hub: Path, notes: gitmem.Documents) -> None:
    git(tmp_path, "init", "-q", "-b", "master", "else")
    git(tmp_path / "else", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path / "else", "push", "-q", str(hub), "master")
    machine = Machine(tmp_path / "store2", str(hub))
    machine.environment.deploy(agent="tutor", memories=[NOTES])
    stops(machine, RemoteHistoryError, "has no main, but refs/heads/master")
    machine.store.close()


def test_an_unrelated_remote(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    one, _ = machines
    one.write("workshop", "a")
    one.environment.sync()
    stranger = Machine(tmp_path / "stranger", str(tmp_path / "hub.git"))
    stranger.environment.deploy(agent="tutor", memories=[NOTES])
    stranger.write("workshop", "b")
    stops(stranger, RemoteHistoryError, "nothing to do with this one")
    stranger.store.close()


def test_a_missing_remote(machines: tuple[Machine, Machine], hub: Path) -> None:
    hub.rename(hub.with_name("moved.git"))
    stops(machines[0], RemoteRefusedError, "does not exist")


def test_a_remote_that_is_away(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "one", "http://127.0.0.1:9/hub.git")
    machine.environment.deploy(agent="tutor", memories=[NOTES])
    stops(machine, RemoteUnreachableError, "cannot be reached")
    machine.store.close()


def test_a_hook_that_refuses(machines: tuple[Machine, Machine], hub: Path) -> None:
    one, two = machines
    hook(hub, "pre-receive", "echo not on Sundays >&2; exit 1")
    one.write("workshop", "a")
    stops(one, RemoteRefusedError, "not on Sundays")
    hook(hub, "pre-receive", "")
    assert one.environment.sync().sent
    two.environment.sync()
    agree(one, two)


def test_no_remote_or_several(environment: gitmem.Environment) -> None:
    with pytest.raises(gitmem.NotFoundError, match="no remote"):
        environment.sync()
    environment.remotes.add("a", "https://git.example/a")
    environment.remotes.add("b", "https://git.example/b")
    with pytest.raises(gitmem.InvalidRequestError, match="Which remote"):
        environment.sync()
    with pytest.raises(gitmem.NotFoundError, match="no remote c"):
        environment.sync("c")


# What comes in and is not what it should be


@pytest.mark.findings("documents", "layout")
def test_bad_documents_are_reported_and_the_last_good_version_goes_on(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("workshop", "good")
    one.environment.sync()
    two.environment.sync()
    (one.tree / "notes" / "workshop.json").write_text("<<<<<<< ours")
    (one.tree / "notes" / "huge.json").write_text('{"text": "' + "x" * 20_000 + '"}')
    (one.tree / "notes" / "link.json").symlink_to("/etc/passwd")
    (one.tree / "way").symlink_to("/etc")
    git(one.tree, "add", ".")
    git(one.tree, "commit", "-q", "-m", "bad")
    git(one.tree, "push", "-q", "origin", "main")
    two.write("other", "x")
    done = two.environment.sync()
    assert set(done.refused) == {"notes/workshop.json", "notes/huge.json", "notes/link.json", "way"}
    assert "not an ordinary file" in done.refused["way"]
    assert two.notes.read("workshop").text == "good"
    assert set(two.revisions()) == {"workshop", "other"}
    assert not (two.tree / "way").exists()
    assert not (two.tree / "notes" / "link.json").is_symlink()
    assert two.write("workshop", "better").text == "better"


@pytest.mark.findings
def test_a_path_that_must_not_be_written_stops_everything(machines: tuple[Machine, Machine], hub: Path) -> None:
    one, _ = machines
    blob = git(hub, "hash-object", "-w", "--stdin", stdin="x")
    inner = git(hub, "mktree", stdin=f"100644 blob {blob}\tpwned\n")
    tree = git(hub, "mktree", stdin=git(hub, "ls-tree", "main") + f"\n040000 tree {inner}\t..\n")
    commit = git(hub, "commit-tree", "-p", "main", "-m", "evil", tree)
    git(hub, "update-ref", "refs/heads/main", commit)
    stops(one, RemoteHistoryError, r"holds '\.\./pwned', which must not be written")
    assert not (one.tree.parent / "pwned").exists()


# The command line


def test_the_commands(tmp_path: Path, machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("workshop", "a")
    one.environment.sync()
    run = Cli(two.folder)
    run.folder.joinpath("gitmem.toml").write_text('project = "bot"\n')
    assert run.ok("sync") == "origin: received 1 document\n"
    assert run.ok("sync", "origin") == "origin: up to date\n"
    assert run.json("sync")["conflicts"] == []
    assert run.json("conflicts") == {"conflicts": []}
    assert run.refused("sync", "nope")["code"] == "not_found"
    assert run.refused("resolve", "notes", "workshop", "--ours")["code"] == "not_found"
    assert run.refused("resolve", "notes", "workshop", status=2)["code"] == "invalid_request"
