"""Doubting the index: SQLite does not notice bytes that have changed on the disk, so a row may be wrong or gone."""

from __future__ import annotations

from gitmem.environment.catalog import Catalog
from gitmem.environment.form import Form
from gitmem.environment.history import FILE_MODES
from gitmem.environment.layout import Name
from gitmem.environment.rows import Row
from gitmem.errors import DamagedError
from gitmem.git.objects import Oid
from gitmem.git.trees import Entry, Trees


def misses(form: Form, catalog: Catalog, trees: Trees, root: Oid, name: Name) -> bool:
    """Whether the tree at which the index stands holds a document of which the index says nothing."""
    if _entry(form, trees, root, name) is None:
        return False
    return all(name != rejected for rejected, _, _ in catalog.rejected())


def contradicts(form: Form, trees: Trees, root: Oid, name: Name, row: Row) -> bool:
    """Whether the tree at which the index stands holds another blob than a live row says."""
    entry = _entry(form, trees, root, name)
    return entry is not None and entry.oid != row.blob


def _entry(form: Form, trees: Trees, root: Oid, name: Name) -> Entry | None:
    """The file of a document; None where damage hides it too, so that nothing speaks against the index."""
    try:
        _, entry = form.locate(trees, root, name)
    except DamagedError:
        return None
    return entry if entry and entry.mode in FILE_MODES else None
