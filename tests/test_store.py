"""A store and its projects."""

from __future__ import annotations

import gc

import pytest

import gitmem
from gitmem import ErrorCode, GitmemError


def test_asking_for_projects_that_do_not_exist_keeps_nothing(store: gitmem.Store) -> None:
    for number in range(50):
        with pytest.raises(GitmemError) as caught:
            store.existing_project(f"unknown-{number}")
        assert caught.value.code is ErrorCode.PROJECT_NOT_FOUND
    kept = [found.id for found in gc.get_objects() if isinstance(found, gitmem.Project)]
    assert not [project_id for project_id in kept if project_id.startswith("unknown-")]
    made = store.project("unknown-1").create()
    assert store.existing_project("unknown-1") is made
