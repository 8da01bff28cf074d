"""The commands key create, key list and key revoke."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.keys import Keys
from tests.cli import Cli, prepared

HOUR = 3_600_000


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    return prepared(tmp_path / "store")


@pytest.fixture
def keys(run: Cli) -> Keys:
    return Keys(str(run.folder))


def test_a_key_is_shown_once_then_listed_and_revoked(run: Cli, keys: Keys) -> None:
    options = ("--project", "bot", "--scope", "memory:read", "--expires", "90d")
    made = run("key", "create", "--name", "ci", *options)
    assert (made.status, made.out.count("\n"), made.err.count("\n")) == (0, 1, 1)
    assert keys.find(made.out.strip().encode()).name == "ci"
    ann = run("key", "create", "--name", "ann", "--member", "ann", "--json").json
    assert (ann["member"], ann["role"], ann["expiresAt"]) == ("ann", "member", None)
    assert keys.find(ann["key"].encode()).id == ann["id"]
    listed = run("key", "list", "--json")
    assert made.out.strip() not in listed.out
    assert ann["key"] not in listed.out
    found = [(key["name"], key["project"], key["scopes"], key["role"]) for key in listed.json["keys"]]
    assert found == [("ci", "bot", ["memory:read"], "owner"), ("ann", None, [], "member")]
    assert run("key", "revoke", ann["id"], "--json").json["revokedAt"]
    assert run.ok("key", "revoke", "ci").startswith("revoked ci")
    assert run.ok("key", "list").count("revoked") == 2


def test_a_group_of_commands_alone_shows_its_help(run: Cli) -> None:
    done = run("key")
    assert (done.status, done.out) == (2, "")
    assert "create" in done.err


@pytest.mark.parametrize(
    ("arguments", "says", "status"),
    [
        (["create"], "--name", 2),
        (["create", "--name", ""], "name", 2),
        (["create", "--name", "a\nb"], "printable", 2),
        (["create", "--name", "taken"], "already", 2),
        (["create", "--name", "a", "--role", "owner"], "--member", 2),
        (["create", "--name", "a", "--member", "m", "--role", "boss"], "boss", 2),
        (["create", "--name", "a", "--scope", "memory:all"], "memory:all", 2),
        (["create", "--name", "a", "--expires", "soon"], "duration", 2),
        (["create", "--name", "a", "--expires", "2020-01-01"], "expired", 2),
        (["create", "--name", "a", "--expires", "999999d"], "duration", 2),
        (["create", "--name", "a", "--project", "nothing"], "nothing", 1),
        (["revoke", "nobody"], "nobody", 1),
    ],
)
def test_wrong_use_is_one_line(run: Cli, keys: Keys, arguments: list[str], says: str, status: int) -> None:
    keys.create(name="taken")
    done = run("key", *arguments)
    assert (done.status, done.out, done.err.count("\n")) == (status, "", 1), done
    assert says in done.err
    assert run("key", *arguments, "--json").status == status
    assert len(keys.all()) == 1


def test_dates_and_durations_end_when_they_say(run: Cli, keys: Keys) -> None:
    run.ok("key", "create", "--name", "date", "--expires", "2093-01-31")
    run.ok("key", "create", "--name", "moment", "--expires", "2093-01-31T12:00:00+02:00")
    run.ok("key", "create", "--name", "weeks", "--expires", "2w")
    found = {key.name: key for key in keys.all()}
    assert found["date"].to_json()["expiresAt"] == "2093-01-31T00:00:00.000Z"
    assert found["moment"].to_json()["expiresAt"] == "2093-01-31T10:00:00.000Z"
    weeks = found["weeks"]
    assert weeks.expires is not None
    assert weeks.expires - weeks.created in range(14 * 24 * HOUR - 60_000, 14 * 24 * HOUR + 60_000)


def test_a_name_is_free_again_once_its_key_is_revoked_or_expired(run: Cli, keys: Keys) -> None:
    old = Keys(str(run.folder), clock=lambda: 1_700_000_000_000)
    old.create(name="expired", expires=1_700_000_000_000 + HOUR)
    keys.create(name="revoked")
    keys.revoke("revoked")
    for name in ("expired", "revoked"):
        run.ok("key", "create", "--name", name)
        assert [key["name"] for key in run.json("key", "list")["keys"]].count(name) == 2
