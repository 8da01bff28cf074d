"""Creating documents from an export, or from a folder of Markdown and plain text files."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from gitmem.codec import MAX_FILE_BYTES
from gitmem.documents import Documents
from gitmem.environment.catchup import Progress, silent
from gitmem.errors import (
    DamagedError,
    GitmemError,
    InvalidDocumentError,
    InvalidRequestError,
    LimitExceededError,
    NotFoundError,
    PreconditionFailedError,
)
from gitmem.export import LeftOut
from gitmem.git.files import storage, storage_error
from gitmem.limits import check_resource_id, is_resource_id
from gitmem.naming import id_from, title_from
from gitmem.records import NewDocument
from gitmem.store import Environment
from gitmem.strictjson import loads

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


Read = Callable[[_Source, bytes], NewDocument]
"""Makes a document of a file's bytes. Raises InvalidDocumentError."""


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
    return _Import(environment, left_out, progress).run(sources, _exported)


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
    return _Import(environment, left_out, progress).run(list(sources.values()), _text)


class _Import:
    """One run over the files of an import."""

    def __init__(self, environment: Environment, left_out: list[LeftOut], progress: Progress) -> None:
        self._environment = environment
        self._left_out = left_out
        self._progress = progress
        self._created = 0
        self._unchanged = 0

    def run(self, sources: Sequence[_Source], read: Read) -> Imported:
        """Create a document from each source; `sources` come resource by resource."""
        for resource, group in groupby(sources, lambda source: source.resource):
            documents = self._environment.documents(resource)
            asked: deque[_Source] = deque()
            for outcome in documents.create_many(self._missing(documents, group, read, asked, len(sources))):
                source = asked.popleft()
                if isinstance(outcome, GitmemError):
                    self._leave_out(source, outcome)
                else:
                    self._created += 1
        return Imported(created=self._created, unchanged=self._unchanged, left_out=tuple(self._left_out))

    def _missing(
        self, documents: Documents, sources: Iterable[_Source], read: Read, asked: deque[_Source], total: int
    ) -> Iterator[NewDocument]:
        """What has to be created; each one's source is appended to `asked`."""
        for source in sources:
            self._progress("importing", self._created + self._unchanged + len(self._left_out) + len(asked), total)
            try:
                new = read(source, _bytes_of(source.path))
                if _is_there(documents, new):
                    self._unchanged += 1
                    continue
            except _OF_ONE_FILE as error:
                self._leave_out(source, error)
            except OSError as error:
                self._leave_out(source, storage_error(error, "read it"))
            else:
                asked.append(source)
                yield new

    def _leave_out(self, source: _Source, error: GitmemError) -> None:
        self._left_out.append(LeftOut.because(source.path, error))


def _is_there(documents: Documents, new: NewDocument) -> bool:
    """Whether the document exists just so. Raises PreconditionFailedError where it exists, but differs."""
    try:
        found = documents.read(new.id)
    except NotFoundError:
        return False
    if (found.title, found.text, found.summary, found.agent_writes) != (
        new.title, new.text, new.summary, new.agent_writes,
    ):  # fmt: skip
        raise PreconditionFailedError(
            f"{documents.resource}/{new.id} exists with other content. It is left alone.", actual=found.revision
        )
    return True


def _exported(source: _Source, data: bytes) -> NewDocument:
    """Creating checks what the fields hold."""
    try:
        value = loads(data)
        if value["id"] != source.id:
            raise InvalidDocumentError(f"It holds the document {ascii(value['id'])[:60]}, not {source.id}.")
        return NewDocument(
            id=value["id"],
            title=value["title"],
            text=value["text"],
            summary=value["summary"],
            agent_writes=value["agentWrites"],
        )
    except (ValueError, TypeError):
        raise InvalidDocumentError("It is not a JSON object in UTF-8.") from None
    except KeyError as error:
        raise InvalidDocumentError(f"It is not an exported document: it has no {error.args[0]}.") from None


def _text(source: _Source, data: bytes) -> NewDocument:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidDocumentError(f"It is not UTF-8: see byte {error.start}. Convert it first.") from None
    return NewDocument(id=source.id, title=title_from(text, os.path.basename(source.path)), text=text)


def _bytes_of(path: str) -> bytes:
    """The bytes of an ordinary file. Raises OSError, InvalidDocumentError."""
    if os.path.islink(path):
        raise InvalidDocumentError("It is a symbolic link, which is not followed.")
    descriptor = os.open(path, _READ_FLAGS)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidDocumentError("It is not an ordinary file.")
        if found.st_size > MAX_FILE_BYTES:
            raise InvalidDocumentError(f"It has {found.st_size} bytes, more than any document.")
        return os.read(descriptor, MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def _listed(folder: str) -> list[str]:
    with storage(f"read {folder}"):
        return sorted(os.listdir(folder))


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
