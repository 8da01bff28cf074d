"""Writing the current documents out as JSON files, one a document."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gitmem.environment.catchup import Progress, silent
from gitmem.errors import DamagedError, ErrorCode, GitmemError, NotFoundError, StorageError
from gitmem.git.files import scratch_name, storage, write_all
from gitmem.limits import check_resource_id
from gitmem.records import Document, Resource

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A document or file that an export or import went past, and the reason for a person."""

    subject: str
    code: ErrorCode
    message: str

    @classmethod
    def because(cls, subject: str, error: GitmemError) -> LeftOut:
        return cls(subject=subject, code=error.code, message=error.message)

    def to_json(self) -> dict[str, Any]:
        return {"subject": self.subject, "code": self.code, "message": self.message}


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """How many documents were written, and those that could not be read."""

    documents: int
    left_out: tuple[LeftOut, ...]

    def to_json(self) -> dict[str, Any]:
        return {"documents": self.documents, "leftOut": [found.to_json() for found in self.left_out]}


class Readable(Protocol):
    """The documents of a resource, here or on a server."""

    def ids(self) -> Sequence[str]: ...

    def read(self, document_id: str) -> Document: ...


class Exportable(Protocol):
    """An environment, here or on a server."""

    def inventory(self) -> list[Resource]: ...

    def documents(self, resource: str) -> Readable: ...


def export(
    environment: Exportable, out: str, *, resources: Sequence[str] = (), progress: Progress = silent
) -> Exported:
    """Write `<out>/<resource>/<id>.json` for every document of the resources, or of all of them.

    Reads are individual: no snapshot (seed 000, "Export saved notes"). A file appears whole or not
    at all. Raises NotFoundError for a resource that does not exist; StorageError where a file cannot
    be written, or a symbolic link stands in for a resource's folder.
    """
    counts = {found.id: found.documents for found in environment.inventory()}
    for resource in resources:
        if check_resource_id(resource) not in counts:
            raise NotFoundError(f"There is no resource {resource} here. See gitmem resources.")
    chosen = list(dict.fromkeys(resources or counts))
    total = sum(counts[resource] for resource in chosen)
    written = 0
    left_out: list[LeftOut] = []
    with storage(f"export to {out}"), _opened_folder(out) as top:
        for resource in chosen:
            with _opened_folder(resource, within=top) as folder:
                for document in _readable(environment, resource, left_out):
                    data = json.dumps(document.to_json(), indent=2, ensure_ascii=False).encode() + b"\n"
                    _put(folder, f"{document.id}.json", data)
                    written += 1
                    progress("exporting", written, total)
    return Exported(documents=written, left_out=tuple(left_out))


def _readable(environment: Exportable, resource: str, left_out: list[LeftOut]) -> Iterator[Document]:
    """The documents of a resource; what cannot be read is added to `left_out`."""
    documents = environment.documents(resource)
    for document_id in documents.ids():
        try:
            yield documents.read(document_id)
        except NotFoundError:
            continue  # deleted since it was listed
        except DamagedError as error:
            left_out.append(LeftOut.because(f"{resource}/{document_id}", error))


@contextmanager
def _opened_folder(path: str, within: int | None = None) -> Generator[int, None, None]:
    """A folder, made where it is missing; below `within` it may not be a symbolic link."""
    if within is None:
        os.makedirs(path, exist_ok=True)
        descriptor = os.open(path, _FOLDER_FLAGS)
    else:
        with suppress(FileExistsError):
            os.mkdir(path, dir_fd=within)
        try:
            descriptor = os.open(path, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=within)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise StorageError(f"{path} in the export is a link or a file. Move it away, then export again.") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _put(folder: int, name: str, data: bytes) -> None:
    temporary = f".{scratch_name()}.tmp"
    try:
        descriptor = os.open(temporary, _FILE_FLAGS, 0o644, dir_fd=folder)
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, name) from error
        raise
