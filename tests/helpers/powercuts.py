"""What a loss of power may leave: a process is recorded, and its writes are replayed without what was not synced.

The model is that of POSIX: the contents of a file last when the file was synced, names in a folder when the folder was.
Of what was not, anything may be there: any of the writes, in sectors, and the first of the names of each folder.
"""

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

HEADER = struct.Struct("cillII")
SECTOR = 512


def record(script, root, scratch):
    """Run Python code with a folder as its argument; what it did to files in there, in order."""
    library, log = scratch / "recorder.so", scratch / "log"
    source = Path(__file__).with_name("recorder.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    tests = Path(__file__).parents[1]
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "RECORDER_ROOT": f"{root}/",
        "RECORDER_LOG": str(log),
        "PYTHONPATH": os.pathsep.join(map(str, [tests.parent, tests])),
    }
    subprocess.run([sys.executable, "-c", script, str(root)], env=environment, check=True)
    return list(operations(log.read_bytes()))


def operations(log):
    """(op, fd, a, b, bytes, bytes)."""
    at = 0
    while at < len(log):
        op, fd, a, b, n, m = HEADER.unpack_from(log, at)
        at += HEADER.size
        yield op.decode(), fd, a, b, log[at : at + n], log[at + n : at + n + m]
        at += n + m


class File:
    """Its contents as programs see them, those that last, and the writes between."""

    def __init__(self, born):
        self.born, self.content, self.lasting, self.pending = born, bytearray(), bytearray(), []

    def change(self, offset, data):
        """Write; where data is None, cut or extend."""
        self.pending.append((offset, data))
        apply(self.content, offset, data)

    def sync(self):
        self.lasting, self.pending = bytearray(self.content), []


def apply(content, offset, data):
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data


class Disk:
    """A folder of files, as recorded operations leave it.

    Attributes
    ----------
    names : dict
        Path to File, or to None for a folder.
    lasting : dict
        The same, after a loss of power in which all is lost that may be.
    pending : dict
        Folder to the changes of its names that were not synced, each a dict of names, None for one that went.
    freed : list of bytes
        What lay on the medium where a file was cut, or ended, when that happened.
    """

    def __init__(self, root):
        self.root, self.names, self.lasting, self.pending, self.open = f"{root}/", {}, {}, {}, {}
        self.freed = []

    def do(self, operation):
        """Whether it changed what a loss of power may leave."""
        op, fd, a, b, x, y = operation
        if op in "orlum" and not f"{x.decode()}/".startswith(self.root):
            self.open.pop(fd, None)
            return False
        if op in "wts" and fd not in self.open:
            return False
        getattr(self, f"_{op}")(fd, a, b, x.decode(errors="replace") if op in "orlum" else x, y.decode())
        return True

    def _o(self, fd, empty, born, path, _):
        if Path(path).name.endswith("-shm"):
            self.open.pop(fd, None)
            return
        if path not in self.names and path + "/" != self.root and not self._is_folder(path):
            self._rename({path: File(born)})
        self.open[fd] = self.names.get(path) or path
        if empty and isinstance(self.open[fd], File) and self.open[fd].content:
            self._free(self.open[fd], 0)
            self.open[fd].change(0, None)

    def _is_folder(self, path):
        return path in self.names and self.names[path] is None

    def _w(self, fd, at, _, data, __):
        self.open[fd].change(at, data)

    def _t(self, fd, length, *_):
        self._free(self.open[fd], length)
        self.open[fd].change(length, None)

    def _s(self, fd, *_):
        what = self.open[fd]
        if isinstance(what, File):
            what.sync()
        else:
            for change in self.pending.pop(what, []):
                self.lasting |= change

    def _rename(self, change):
        (folder,) = {str(Path(path).parent) for path in change}
        self.pending.setdefault(folder, []).append(change)
        for path in change:
            self._go(self.names.get(path), path)
        self.names |= change
        for path in [path for path, file in change.items() if file is False]:
            del self.names[path]

    def _go(self, file, path):
        if isinstance(file, File) and sum(other is file for other in self.names.values()) == 1:
            self._free(file, 0)

    def _free(self, file, length):
        self.freed.append(bytes(file.lasting[length:]))
        self.freed += [data[max(0, length - at) :] for at, data in file.pending if data]

    def _r(self, fd, a, b, path, new):
        file = self.names.pop(path)
        self._rename({path: False, new: file})

    def _l(self, fd, a, b, path, new):
        self._rename({new: self.names[path]})

    def _u(self, fd, a, b, path, _):
        self._rename({path: False})

    def _m(self, fd, a, b, path, _):
        if f"{path}/" != self.root:
            self._rename({path: None})

    # --- what is left -----------------------------------------------------------------------------

    def states(self, seed, n_random=2):
        """States that a loss of power may leave now: {path: (contents, birth), or None for a folder}."""
        everything = {folder: len(changes) for folder, changes in self.pending.items()}
        rng = random.Random(seed)
        yield self._state({}, lambda file: file.lasting)
        yield self._state(everything, lambda file: file.content)
        yield self._state(everything, lambda file: file.lasting)
        yield self._state({}, lambda file: file.content)
        for _ in range(n_random):
            yield self._state({folder: rng.randint(0, n) for folder, n in everything.items()}, lambda x: torn(x, rng))

    def _state(self, counts, contents):
        names = dict(self.lasting)
        for folder, n in counts.items():
            for change in self.pending[folder][:n]:
                names |= change
        names = {path: x for path, x in names.items() if x is not False}
        there = {path for path in names if all(self._lasts(x, names) for x in Path(path).parents)}
        return {
            path[len(self.root) :]: None if names[path] is None else (bytes(contents(names[path])), names[path].born)
            for path in sorted(there)
        }

    def _lasts(self, folder, names):
        return not str(folder).startswith(self.root) or names.get(str(folder), 0) is None


def torn(file, rng):
    """Any of the writes that were not synced, each with any of its sectors."""
    content = bytearray(file.lasting)
    for offset, data in file.pending:
        for at in range(0, 1 if data is None else len(data), SECTOR):
            if rng.random() < 0.5:
                apply(content, offset + at, data and data[at : at + SECTOR])
    return content


def put(state, folder):
    """A state as files in an empty folder; when each file was made, by its inode."""
    folder.mkdir()
    for name, file in state.items():
        path = folder / name
        if file is None:
            path.mkdir(0o700)
        else:
            path.write_bytes(file[0])
            path.chmod(0o600)
    return {(folder / name).stat().st_ino: file[1] for name, file in state.items() if file is not None}


def cuts(root, recorded, *, step=1, n_random=2, seed=1):
    """For moments between the operations of a folder: the disk, and each different state."""
    disk, known = Disk(root), set()
    for i, operation in enumerate(recorded):
        if disk.do(operation) and i % step == 0:
            for state in disk.states(f"{seed} {i}", n_random):
                key = hash(repr(sorted(state.items())))
                if key not in known:
                    known.add(key)
                    yield disk, state
