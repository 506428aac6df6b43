"""Folders and files for their owner alone.

Modes are those of POSIX. Windows has none: there a folder is as private as its access list makes it, unchecked.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import stat
import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dpfast._support.atomic_files import POSIX, sync_folder
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import patience

_BLOCK = 4096
_CHUNK = 2**20  # zeros written at a time
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME = -100, 0x100, 0x800  # of Linux


def make_folder(path: Path) -> Path:
    """Make a folder for its owner alone where there is none; return its absolute path, without links."""
    if not os.path.lexists(path):
        make_folders(path, 0o700)
        path.chmod(0o700)  # whatever the umask
    check_private(path)
    if not path.is_dir():
        raise ReleaseError(f"{path} must be a folder, got a file: choose another path")
    return path.resolve()


def make_folders(path: Path, mode: int = 0o777) -> None:
    """Make a folder, and those that it is to be in, where there are none; they last through a loss of power."""
    missing = [x for x in (path, *path.parents) if not os.path.lexists(x)]
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def make_file(path: Path) -> None:
    """Make a new, empty file for its owner alone."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        if POSIX:
            os.fchmod(descriptor, 0o600)  # whatever the umask
    finally:
        os.close(descriptor)


def write_once(path: Path, content: bytes) -> bytes:
    """Write a file for its owner alone, unless it is there; return what is there then, on the disk and as a whole."""
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    make_file(new)
    try:
        with new.open("r+b") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(new)
        except FileExistsError:
            content = path.read_bytes()
    finally:
        new.unlink()
    sync_folder(path.parent)
    return content


def check_private(path: Path) -> None:
    """Refuse a link and what others may open, without opening it.

    Closing a file would drop all locks that the process has on it, those of a store that is in use too.
    """
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise ReleaseError(f"{path} is a symbolic link, which may lead to where others read: give the place itself")
    if POSIX and mode & 0o077:
        wanted = "700" if stat.S_ISDIR(mode) else "600"
        is_empty = stat.S_ISDIR(mode) and not any(path.iterdir())
        holds, first = ("is to hold", "") if is_empty else ("holds", "find out who has read it, then ")
        raise ReleaseError(
            f"{path} {holds} private data and is open to others (mode {stat.S_IMODE(mode):03o}): "
            f"{first}run: chmod {wanted} {path}"
        )


def check_apart(name: str, private: Path, public: Path) -> None:
    """Refuse a private place that is the folder of what is public, or in it: who copies that one would copy it too."""
    inner, outer = private.resolve(), public.resolve()
    if outer == inner or outer in inner.parents:
        raise ReleaseError(
            f"{name} must not lie in the folder of what is public, {public}, got {private}: whoever is given that "
            "folder would get private data too. Choose another place for one of them"
        )


def hold_folder(path: Path) -> Callable[[], None]:
    """Have a folder to oneself, among all that ask for it so on this machine; call what is returned to let it go.

    Unlike the locks of SQLite this one stays when another descriptor of a file in the folder is closed, as by a copy
    for a backup. Windows needs none: there SQLite's locks are not dropped so either.

    Raises
    ------
    BlockingIOError
        Where another has it.
    """
    if not POSIX:
        return lambda: None
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return functools.partial(_let_go, descriptor, os.getpid())


@contextlib.contextmanager
def waiting_for_folder(path: Path) -> Iterator[None]:
    """Have a folder to oneself for a moment, among all that ask for it so; Windows does not tell others.

    Raises
    ------
    ReleaseError
        Where another one has it for too long, as a process that was stopped.
    """
    for _ in patience.tries():
        with contextlib.suppress(BlockingIOError):
            let_go = hold_folder(path)
            break
    else:
        raise ReleaseError(
            f"another process writes into {path}, and was not done within {patience.SECONDS:g} s: find out whether it "
            "was stopped or waits for its disk, end it or let it go on, and try again"
        )
    try:
        yield
    finally:
        let_go()


def _let_go(descriptor: int, process: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        if process == os.getpid():  # a forked child shares the lock, and must not take it from its parent
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def overwrite(path: Path) -> None:
    """Replace what is in a file by zeros, on the disk too; the first block goes before the others."""
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        for first, last in ((0, min(size, _BLOCK)), (_BLOCK, size)):
            for at in range(first, last, _CHUNK):
                file.write(bytes(min(_CHUNK, last - at)))
            file.flush()
            os.fsync(file.fileno())


@functools.cache
def _statx() -> Any:
    return getattr(ctypes.CDLL(None), "statx", None) if POSIX else None


def birth_time(path: Path) -> int | None:
    """Return when a file was made, in nanoseconds since 1970; None where the system or the file system does not tell.

    Unlike its other times nobody can set it, nor does writing into the file change it.
    """
    seconds = getattr(path.lstat(), "st_birthtime", None)
    if seconds is not None:
        return int(seconds * 1e9)
    statx, result = _statx(), ctypes.create_string_buffer(256)
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, result):
        return None
    (mask,), (seconds, nanoseconds) = struct.unpack_from("I", result), struct.unpack_from("qI", result, 80)
    return int(seconds * 10**9 + nanoseconds) if mask & _STATX_BTIME else None
