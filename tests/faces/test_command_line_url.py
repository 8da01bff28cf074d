"""The command line on a server: how it is told which, and what needs the store itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gitmem
from tests.faces.conftest import Place
from tests.http.server import Server
from tests.support import clean_environment, python
from tests.support import gitmem as run

NEEDS_THE_STORE = (
    ["init"], ["path"], ["status"], ["gc"], ["doctor"], ["blame", "notes", "a"], ["import", "."], ["remote", "list"],
    ["serve"], ["key", "list"], ["key", "create", "--name", "k"], ["mcp", "--memory", "notes"],
)  # fmt: skip


@pytest.fixture
def project(place: Place) -> str:
    return place.new_project()


@pytest.mark.parametrize("command", NEEDS_THE_STORE, ids=" ".join)
def test_what_needs_the_store_says_so(command: list[str], tmp_path: Path) -> None:
    refused_away_from_the_store(run(*command, "--url", "http://127.0.0.1:1", cwd=tmp_path), tmp_path)


def test_it_says_so_too_where_a_variable_names_the_server(tmp_path: Path) -> None:
    refused_away_from_the_store(run("status", cwd=tmp_path, env={"GITMEM_URL": "http://127.0.0.1:1"}), tmp_path)


def refused_away_from_the_store(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert "needs the store itself" in done.stderr
    assert not list(folder.iterdir())


def test_variables_say_which_server(place: Place, served: Server, project: str, tmp_path: Path) -> None:
    told = {"GITMEM_URL": served.url, "GITMEM_PROJECT": project}
    for key in ({"GITMEM_API_KEY": place.key}, {"GITMEM_API_KEY_FILE": str(place.key_file)}):
        done = run("resources", "--json", cwd=tmp_path, env=told | key)
        assert json.loads(done.stdout)["resources"][0]["id"] == "notes", done
    unknown = run("resources", cwd=tmp_path, env=told)
    assert (unknown.returncode, unknown.stderr.count("\n")) == (1, 1)
    assert "API key" in unknown.stderr
    missing = run("resources", "--api-key-file", "nowhere", cwd=tmp_path, env=told)
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    empty = run("resources", "--api-key-file", "/dev/null", cwd=tmp_path, env=told)
    assert (empty.returncode, "no API key" in empty.stderr) == (2, True)


def test_options_come_before_variables(place: Place, served: Server, project: str) -> None:
    other = {"GITMEM_URL": "http://127.0.0.1:1", "GITMEM_API_KEY": "wrong", "GITMEM_PROJECT": project}
    key = ["--api-key-file", str(place.key_file)]
    assert run("list", "notes", "--url", served.url, *key, env=other).returncode == 0
    assert run("list", "notes", "--store", str(place.folder), env=other).returncode == 0
    store = {"GITMEM_STORE": "/nowhere", "GITMEM_PROJECT": project}
    assert run("list", "notes", "--url", served.url, *key, env=store).returncode == 0


def test_two_places_at_once_are_refused(tmp_path: Path) -> None:
    url = "http://127.0.0.1:1"
    for arguments, variables in (
        (["--store", ".", "--url", url], {}),
        (["--store", ".", "--api-key-file", "f"], {}),
        (["--api-key-file", "f"], {}),
        ([], {"GITMEM_STORE": ".", "GITMEM_URL": url}),
    ):
        done = run("list", "notes", *arguments, cwd=tmp_path, env=variables)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done


def test_the_nearest_settings_name_project_agent_and_memory(place: Place, served: Server, tmp_path: Path) -> None:
    project = place.new_project()
    (tmp_path / "gitmem.toml").write_text(
        f'project = "{project}"\nagent = "coder"\n[memory.plans]\ndescription = "What comes next."\n'
    )
    (tmp_path / "below").mkdir()
    told = ["--url", served.url, "--api-key-file", str(place.key_file)]
    assert run("deploy", *told, cwd=tmp_path / "below").stdout.startswith("deployed coder@development with plans")
    started = run("session", "create", "--memory", "plans", "--json", *told, cwd=tmp_path)
    assert json.loads(started.stdout)["session"]["agentId"] == "coder"
    nameless = run("resources", *told, cwd="/", env={"HOME": "/nonexistent"})
    assert (nameless.returncode, "Which project?" in nameless.stderr) == (2, True)


def test_production_is_another_environment(place: Place, served: Server, project: str) -> None:
    told = ["--url", served.url, "--api-key-file", str(place.key_file), "--project", project]
    assert run("create", "notes", "a", "--title", "A", *told).returncode == 0
    assert run("show", "notes", "a", "--environment", "production", *told).returncode == 1


def test_a_text_is_edited_in_the_editor(place: Place, served: Server, project: str, tmp_path: Path) -> None:
    told = ["--url", served.url, "--api-key-file", str(place.key_file), "--project", project]
    run("create", "notes", "a", "--title", "A", "--text-stdin", *told, stdin=b"one\n")
    editor = tmp_path / "editor.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'a').write('two\\n')\n")
    done = run("edit", "notes", "a", *told, env={"EDITOR": f"{sys.executable} {editor}"})
    assert done.returncode == 0, done
    assert run("show", "notes", "a", *told).stdout.endswith("\n\none\ntwo\n")


def test_events_are_followed_until_the_session_ends(place: Place, served: Server, project: str) -> None:
    told = ["--url", served.url, "--api-key-file", str(place.key_file), "--project", project]
    with gitmem.Client(served.url, place.key) as client:
        sessions = client.project(project).environment().sessions
        session = sessions.start_on_document(
            agent="tutor", resource="notes", document_id="a", document={"title": "A"}, idempotency_key="k"
        ).session
        command = os.path.join(os.path.dirname(sys.executable), "gitmem")
        follow = [command, "session", "events", session.id, "--follow", "--json", *told]
        with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True, env=clean_environment()) as process:
            assert process.stdout
            for text in ("one", "two"):
                assert session.render(["notes"]).call("memory_save", {"text": text}).status == "saved"
                assert json.loads(process.stdout.readline())["data"]["bytes"] == 3
            session.end()
            assert process.stdout.read() == ""
            assert process.wait(30) == 0


def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    done = run("list", "notes", "--url", "http://127.0.0.1:1", "--project", "bot", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "does not answer" in done.stderr


def test_a_store_here_is_opened_without_the_client(place: Place, project: str) -> None:
    code = (
        "import sys\nfrom gitmem.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print({name for name in sys.modules if name.startswith(('gitmem.client', 'http.'))})"
    )
    done = python(code, "list", "notes", "--store", str(place.folder), "--project", project)
    assert done.stdout == "set()\n", done
