"""The working tree and `.git/index`: what a person's next plain `git commit` would undo."""

from __future__ import annotations

from collections.abc import Iterator

from gitmem.checks.findings import Finding
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.handedits import OLDER
from gitmem.environment.lagging import Search
from gitmem.environment.layout import text_path
from gitmem.environment.status import KEPT_ASIDE, status
from gitmem.errors import StorageError
from gitmem.git.objects import Oid
from gitmem.git.stage import Stage


def left_alone(environment: EnvironmentRepository) -> Iterator[Finding]:
    """A person's files that gitmem could neither commit nor replace."""
    for file in status(environment).files:
        if file.state == "stale" and file.reason and file.reason.startswith(OLDER):
            message = (
                f"It is left alone, as {file.reason}. Committing it would undo a save. "
                "Compare it (git diff) and put it right, or give it up (gitmem discard)."
            )
            yield Finding(check="worktree", subject=file.path, message=message)
        elif file.reason == KEPT_ASIDE:
            yield Finding(check="worktree", subject=file.path, message=f"This is {KEPT_ASIDE}.")


def staging(environment: EnvironmentRepository, tip: Oid) -> Iterator[Finding]:
    """Entries of `.git/index` that lag. A person's own staged changes are not findings."""
    parts = environment.parts()
    repository = parts.repository
    if parts.worktree is None or not repository.head_is_main() or repository.operation_in_progress():
        return
    stage = Stage(repository.git_dir, repository.scratch)
    try:
        next(stage.entries(), None)
    except StorageError as error:
        yield Finding(check="staging", subject=".git/index", message=error.message)
        return
    for path in sorted(Search(parts.form, repository, parts.catalog, parts.worktree, stage, tip).run().behind):
        message = (
            "Its entry in .git/index is an older version: a plain git commit would undo a save. Run doctor --repair."
        )
        yield Finding(check="staging", subject=text_path(path), message=message)
