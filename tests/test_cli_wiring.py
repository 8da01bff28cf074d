"""How the command line finds its store, takes its options, and ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gitmem.cli.main import COMMANDS, cli
from tests.cli import TOML, Cli, prepared
from tests.support import clean_environment, gitmem, python


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    """A store whose project has been made and deployed."""
    return prepared(tmp_path / "store")


def test_every_command_is_listed_and_takes_json() -> None:
    help_text = CliRunner().invoke(cli, ["--help"]).stdout
    listed = {line.split()[0] for line in help_text.partition("Commands:")[2].splitlines() if line}
    assert listed == set(COMMANDS)
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert any("--json" in parameter.opts for parameter in command.params), name
        assert command.help, name


def test_no_command_shows_help_and_is_wrong_usage() -> None:
    done = CliRunner().invoke(cli, [])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Commands:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["shw"], "No such command 'shw'"),
        (["show", "notes"], "Missing argument 'ID'"),
        (["show", "notes", "a", "b"], "unexpected extra argument (b)"),
        (["list", "notes", "--nope"], "No such option '--nope'"),
        (["create", "notes", "a"], "Missing option '--title'"),
        (["list", "notes", "--environment", "staging"], "'staging' is not one of 'development', 'production'"),
        (["export"], "Missing option '--out'"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    error = Cli(tmp_path)(*arguments)
    assert (error.status, error.out) == (2, "")
    assert says in error.err
    assert error.err.count("\n") == 1
    machine = Cli(tmp_path)(*arguments, "--json")
    assert machine.status == 2
    assert machine.error["code"] == "invalid_request"
    assert says in machine.error["message"]


def test_a_document_called_json_does_not_ask_for_json(run: Cli) -> None:
    assert run("show", "notes", "--", "--json").err.startswith("There is no document notes/--json.")


def test_shared_options_stand_before_or_after_the_command(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    before = Cli(tmp_path / "elsewhere")
    assert before("--store", store, "--json", "init", "--project", "bot").json == {"store": store, "project": "bot"}
    after = before("init", "--store", store, "--project", "bot", "--json")
    assert after.json == {"store": store, "project": "bot"}
    assert before("--json", "--store", store, "resources", "--project", "other").error["code"] == "project_not_found"


def test_the_store_is_found_upwards_then_by_environment_then_by_option(tmp_path: Path, run: Cli) -> None:
    below = run.folder / "bot" / "development" / "notes"
    assert gitmem("list", "notes", cwd=below).returncode == 0
    other = tmp_path / "other"
    assert gitmem("init", str(other), "--project", "else", cwd=tmp_path).returncode == 0
    found = gitmem("path", cwd=below, env={"GITMEM_STORE": str(other)})
    assert found.stdout == f"{other}/else/development\n"
    found = gitmem("path", "--store", str(run.folder), cwd=below, env={"GITMEM_STORE": str(other)})
    assert found.stdout == f"{run.folder}/bot/development\n"


def test_the_wrong_folder_is_one_clear_line(tmp_path: Path) -> None:
    done = gitmem("list", "notes", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "gitmem init" in done.stderr
    done = gitmem("list", "notes", "--store", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_empty_store_is_not_the_current_folder(run: Cli) -> None:
    for arguments in (["list", "notes", "--store", ""], ["init", "", "--project", "new"], ["init", "--store="]):
        done = gitmem(*arguments, cwd=run.folder)
        assert (done.returncode, done.stderr) == (2, "The name of the store's folder is empty.\n")
    assert not (run.folder / "new").exists()


def test_a_deleted_current_folder_is_one_clear_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD"; exec "$0" list notes'
    command = os.path.join(os.path.dirname(sys.executable), "gitmem")
    done = subprocess.run(
        ["sh", "-c", script, command], cwd=gone, capture_output=True, text=True, env=clean_environment(), check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "has been deleted" in done.stderr


def test_the_project_comes_from_option_then_environment_then_toml(run: Cli) -> None:
    run.ok("init", "--project", "second")
    assert run.ok("path").endswith("/bot/development\n")
    assert run("path", env={"GITMEM_PROJECT": "second"}).out.endswith("/second/development\n")
    assert run("path", "--project", "bot", env={"GITMEM_PROJECT": "second"}).out.endswith("/bot/development\n")
    assert run.refused("path", "--project", "third")["code"] == "project_not_found"
    assert run.refused("path", "--project", "../bot", status=2)["code"] == "invalid_request"
    assert not (run.folder / "third").exists()


def test_without_a_project_the_line_says_how_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "gitmem.toml").write_text("")
    assert "--project" in Cli(tmp_path).refused("resources", status=2)["message"]
    assert "--project" in Cli(tmp_path).refused("init", status=2)["message"]


def test_environments_are_separate(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    assert run.refused("show", "notes", "a", "--environment", "production")["code"] == "not_found"
    run.ok("deploy", "--environment", "production")
    run.ok("create", "notes", "a", "--title", "Other", "--environment", "production")
    assert run.json("show", "notes", "a")["title"] == "A"


def test_init_keeps_an_existing_toml_and_adds_a_project(run: Cli) -> None:
    before = (run.folder / "gitmem.toml").read_text()
    run.ok("init", "--project", "second")
    assert (run.folder / "gitmem.toml").read_text() == before
    assert (run.folder / "second" / "control.git").is_dir()


def test_init_writes_a_toml_that_its_hint_leads_to(tmp_path: Path) -> None:
    run = Cli(tmp_path)
    run.ok("init", "--project", "bot")
    toml = tmp_path / "gitmem.toml"
    assert "No memory is declared" in run.refused("deploy", "--agent", "tutor", status=2)["message"]
    toml.write_text(toml.read_text().replace("# [", "[").replace("# desc", "desc").replace("# max", "max"))
    run.ok("deploy", "--agent", "tutor")
    assert [resource["id"] for resource in run.json("resources")["resources"]] == ["notes"]


@pytest.mark.parametrize("project", ["..", "Bot", "a--b", "", "control.git", "b" * 129, "bot\n", "b\0t"])
def test_init_refuses_a_project_outside_the_grammar_and_writes_nothing(tmp_path: Path, project: str) -> None:
    run = Cli(tmp_path / "store")
    assert run.refused("init", "--project", project, status=2)["code"] == "invalid_request"
    assert not (tmp_path / "store").exists()


def test_a_broken_toml_names_the_file(run: Cli) -> None:
    (run.folder / "gitmem.toml").write_text("project = bot")
    assert str(run.folder / "gitmem.toml") in run.refused("resources", status=2)["message"]
    (run.folder / "gitmem.toml").write_text(TOML)


def test_the_agent_is_option_then_toml_then_the_only_one(run: Cli) -> None:
    assert run.json("deploy", "--agent", "coach")["agentId"] == "coach"
    assert run.json("deploy")["agentId"] == "tutor"
    toml = run.folder / "gitmem.toml"
    toml.write_text(TOML.replace('agent = "tutor"', ""))
    assert "coach, tutor" in run.refused("deploy", status=2)["message"]
    assert run("deploy", "--environment", "production", "--agent", "solo").status == 0
    assert run.json("deploy", "--environment", "production")["agentId"] == "solo"


def test_deploy_gives_the_deployment_of_the_management_api(run: Cli) -> None:
    deployment = run.json("deploy")
    assert deployment.keys() == {"id", "agentId", "alias", "createdAt"}
    assert deployment["alias"] == "development"


def test_giving_up_all_memory_retires_resources_that_stay_in_use(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    (run.folder / "gitmem.toml").write_text('project = "bot"\nagent = "tutor"\n')
    run.ok("deploy")
    assert run.json("resources") == {
        "resources": [
            {"id": "notes", "provider": {"kind": "document", "maxBytes": 8192}, "declared": False, "documents": 1}
        ]
    }
    run.ok("retitle", "notes", "a", "Still here")
    assert run.json("list", "notes")["documents"][0]["title"] == "Still here"


def test_deploy_takes_every_declaration_of_a_module(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("LIMIT = 100\n")
    module = tmp_path / "memory.py"
    module.write_text(
        "import gitmem, shared\n"
        "print('loading')\n"
        "facts = gitmem.define_memory(id='facts', description='Facts.',"
        " provider=gitmem.document_memory(max_bytes=shared.LIMIT))\n"
        "again = facts\n"
        "plans = gitmem.define_memory(id='plans', description='Plans.')\n"
    )
    done = run("deploy", "--module", str(module), "--json")
    assert done.json["agentId"] == "tutor"
    assert done.err == "loading\n"
    found = {resource["id"]: resource for resource in run.json("resources")["resources"]}
    assert found.keys() == {"facts", "notes", "plans"}
    assert found["facts"]["provider"]["maxBytes"] == 100
    assert not found["notes"]["declared"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1", "declares no memory"),
        ("1/0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import gitmem\na = gitmem.define_memory(id='No', description='x')", "not a resource id"),
    ],
)
def test_a_module_that_does_not_declare_is_one_clear_line(run: Cli, tmp_path: Path, code: str, says: str) -> None:
    module = tmp_path / "memory.py"
    module.write_text(code)
    assert says in run.refused("deploy", "--module", str(module), status=2)["message"]
    assert says not in run.refused("deploy", "--module", str(tmp_path / "absent.py"), status=2)["message"]


def test_declarations_that_disagree_change_nothing(run: Cli, tmp_path: Path) -> None:
    module = tmp_path / "memory.py"
    module.write_text(
        "import gitmem\n"
        "a = gitmem.define_memory(id='facts', description='One.')\n"
        "b = gitmem.define_memory(id='facts', description='Two.')\n"
    )
    assert "declared twice" in run.refused("deploy", "--module", str(module), status=2)["message"]
    assert [resource["id"] for resource in run.json("resources")["resources"]] == ["notes"]


def test_the_shell_completes_commands_resources_and_documents(run: Cli) -> None:
    run.ok("create", "notes", "workshop", "--title", "W")
    run.ok("create", "notes", "wiki", "--title", "W")

    def completed(*words: str) -> set[str]:
        done = gitmem(
            cwd=run.folder,
            env={
                "_GITMEM_COMPLETE": "bash_complete",
                "COMP_WORDS": " ".join(("gitmem", *words)),
                "COMP_CWORD": str(len(words)),
            },
        )
        assert (done.returncode, done.stderr) == (0, "")
        return {line.removeprefix("plain,") for line in done.stdout.splitlines() if line}

    assert completed("fr") == {"freeze"}
    assert completed("show", "n") == {"notes"}
    assert completed("show", "notes", "wo") == {"workshop"}
    assert completed("show", "nothing", "w") == set()
    assert completed("--store", "/nowhere", "show", "n") == set()


def test_an_unexpected_error_is_one_line_and_a_traceback_only_on_demand(run: Cli) -> None:
    # A broken standard library stands in for a bug.
    code = (
        "import sys, tomllib\n"
        "tomllib.load = lambda file: 1 / 0\n"
        "from gitmem.cli.main import main\n"
        "sys.argv = ['gitmem', 'resources', '--store', *sys.argv[1:]]\n"
        "main()\n"
    )
    done = python(code, str(run.folder))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("gitmem failed unexpectedly: ZeroDivisionError")
    done = python(code, str(run.folder), "--json")
    assert json.loads(done.stderr)["error"]["code"] == "internal"
    done = python("import os\nos.environ['GITMEM_DEBUG'] = '1'\n" + code, str(run.folder))
    assert done.returncode == 1
    assert "Traceback" in done.stderr
