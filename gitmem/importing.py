"""Creating documents from an export, or from a folder of Markdown and plain text files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gitmem.codec import MAX_FILE_BYTES, loads
from gitmem.documents import Documents
from gitmem.environment.catchup import Progress, silent
from gitmem.errors import (
    DamagedError,
    InvalidDocumentError,
    InvalidRequestError,
    LimitExceededError,
    NotFoundError,
    PreconditionFailedError,
)
from gitmem.export import LeftOut
from gitmem.git.files import storage, storage_error
from gitmem.limits import check_document_id, check_resource_id, is_resource_id
from gitmem.naming import id_from, title_from
from gitmem.store import Environment

_TEXT_ENDINGS: Final = (".md", ".txt")
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OF_ONE_FILE: Final = (InvalidRequestError, LimitExceededError, NotFoundError, PreconditionFailedError, DamagedError)
"""What concerns one file only; every other error ends the import."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """How many documents were created, how many were there already just so, and what was left out."""

    created: int
    unchanged: int
    left_out: tuple[LeftOut, ...]

    def to_json(self) -> dict[str, Any]:
        left_out = [found.to_json() for found in self.left_out]
        return {"created": self.created, "unchanged": self.unchanged, "leftOut": left_out}


class _Source(NamedTuple):
    path: str
    resource: str
    id: str


Fields = dict[str, Any]
"""The arguments of `Documents.create`, as a file gives them; creating checks them."""


def import_export(environment: Environment, folder: str, *, progress: Progress = silent) -> Imported:
    """Create the documents of an export, `<folder>/<resource>/<id>.json`, each as one commit.

    A document that exists with the same content is passed over, so that an import that was stopped
    can be run again; one that differs is left alone and reported. Symbolic links are not followed.
    Raises InvalidRequestError where the folder is no export; StorageError; BusyError.
    """
    known = {memory.id for memory, _ in environment.resources()}
    left_out: list[LeftOut] = []
    sources: list[_Source] = []
    found = [name for name in _listed(folder) if is_resource_id(name) and _is_folder(os.path.join(folder, name))]
    if not found:
        raise InvalidRequestError(
            f"{folder} is not an export: it has no RESOURCE/ID.json. For .md and .txt files give --resource."
        )
    for resource in found:
        if resource not in known:
            error = NotFoundError(f"There is no resource {resource} here. Declare it and deploy, then import again.")
            left_out.append(LeftOut.because(os.path.join(folder, resource), error))
            continue
        files = _listed(os.path.join(folder, resource))
        sources += (
            _Source(os.path.join(folder, resource, name), resource, name.removesuffix(".json"))
            for name in files
            if name.endswith(".json") and not name.startswith(".")
        )
    return _imported(environment, sources, _exported_fields, left_out, progress)


def import_texts(environment: Environment, folder: str, resource: str, *, progress: Progress = silent) -> Imported:
    """Create a document of `resource` from each `.md` and `.txt` file directly in `folder`.

    The id comes from the file's name, the title from its first heading, else from its name.
    Otherwise like `import_export`. Raises NotFoundError for a resource that does not exist.
    """
    if environment.resource(check_resource_id(resource)) is None:
        raise NotFoundError(f"There is no resource {resource} here. Declare it and deploy, or see gitmem resources.")
    left_out: list[LeftOut] = []
    sources: dict[str, _Source] = {}
    for name in _listed(folder):
        if not name.lower().endswith(_TEXT_ENDINGS):
            continue
        source = _Source(os.path.join(folder, name), resource, id_from(name))
        earlier = sources.setdefault(source.id, source)
        if earlier is not source:
            error = InvalidRequestError(f"Its id would be {source.id}, as that of {earlier.path}. Rename one of them.")
            left_out.append(LeftOut.because(source.path, error))
    return _imported(environment, list(sources.values()), _text_fields, left_out, progress)


def _imported(
    environment: Environment,
    sources: Sequence[_Source],
    fields_of: Callable[[_Source, bytes], Fields],
    left_out: list[LeftOut],
    progress: Progress,
) -> Imported:
    created = unchanged = 0
    for done, source in enumerate(sources):
        progress("importing", done, len(sources))
        try:
            check_document_id(source.id)
            fields = fields_of(source, _read(source.path))
            if _create(environment.documents(source.resource), source.id, fields):
                created += 1
            else:
                unchanged += 1
        except _OF_ONE_FILE as error:
            left_out.append(LeftOut.because(source.path, error))
        except OSError as error:
            left_out.append(LeftOut.because(source.path, storage_error(error, "read it")))
    progress("importing", len(sources), len(sources))
    return Imported(created=created, unchanged=unchanged, left_out=tuple(left_out))


def _create(documents: Documents, document_id: str, fields: Fields) -> bool:
    """Whether the document had to be created. Raises PreconditionFailedError where another is in its place."""
    try:
        found = documents.read(document_id)
    except NotFoundError:
        documents.create(document_id, **fields)
        return True
    if any(getattr(found, field) != value for field, value in fields.items()):
        raise PreconditionFailedError(
            f"{documents.resource}/{document_id} exists with other content. It is left alone.", actual=found.revision
        )
    return False


def _exported_fields(source: _Source, data: bytes) -> Fields:
    try:
        value = loads(data)
        if value["id"] != source.id:
            raise InvalidDocumentError(f"It holds the document {ascii(value['id'])[:60]}, not {source.id}.")
        return {
            "title": value["title"],
            "text": value["text"],
            "summary": value["summary"],
            "agent_writes": value["agentWrites"],
        }
    except (ValueError, TypeError):
        raise InvalidDocumentError("It is not a JSON object in UTF-8.") from None
    except KeyError as error:
        raise InvalidDocumentError(f"It is not an exported document: it has no {error.args[0]}.") from None


def _text_fields(source: _Source, data: bytes) -> Fields:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidDocumentError(f"It is not UTF-8: see byte {error.start}. Convert it first.") from None
    return {"title": title_from(text, os.path.basename(source.path)), "text": text}


def _read(path: str) -> bytes:
    """The bytes of an ordinary file. Raises OSError, InvalidDocumentError."""
    if os.path.islink(path):
        raise InvalidDocumentError("It is a symbolic link, which is not followed.")
    descriptor = os.open(path, _READ_FLAGS)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidDocumentError("It is not an ordinary file.")
        if found.st_size > MAX_FILE_BYTES:
            raise InvalidDocumentError(f"It has {found.st_size} bytes, more than any document.")
        return file.read()


def _listed(folder: str) -> list[str]:
    with storage(f"read {folder}"):
        return sorted(os.listdir(folder))


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
