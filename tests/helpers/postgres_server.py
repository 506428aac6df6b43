"""A real server of PostgreSQL: a data folder of its own, on loopback, by a user who may do nothing else."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from helpers.patience import PATIENCE

USER = "postgres"  # made by the package; PostgreSQL refuses root
WORDS = "postgresql must be installed (apt-get install postgresql), with programs in /usr/lib/postgresql/*/bin"


def programs():
    """The folder of the programs of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise RuntimeError(WORDS)
    return found[-1].parent


def free_port():
    with contextlib.closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def as_user(*command):
    """A command by the user who owns the server."""
    return ["runuser", "-u", USER, "--", *map(str, command)] if os.geteuid() == 0 else list(map(str, command))


class Server:
    """Started by :meth:`start`, as often as it is needed; :meth:`remove` ends it, and takes its data along."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="dpfast-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)
        self.data, self.port = self.folder / "data", free_port()
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-instructions")

    def _run(self, program, *options):
        done = subprocess.run(
            as_user(programs() / program, *options), capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")
        return done.stdout

    @property
    def address(self):
        return f"host=127.0.0.1 port={self.port} user={USER} dbname=postgres"

    def start(self, **settings):
        """Start it with settings of its configuration."""
        given = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "port": self.port} | settings
        options = " ".join(f"-c {name}='{value}'" for name, value in given.items())
        self._run(
            "pg_ctl", "-D", self.data, "-l", self.folder / "log", "-o", options, "-w", "-t", f"{PATIENCE:.0f}", "start"
        )

    def stop(self, mode="fast"):
        """Stop it: "fast" ends sessions, "immediate" is as a crash."""
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", f"{PATIENCE:.0f}", "stop")

    def kill(self):
        """Kill all of its processes at once, as a loss of power would, but for what the disk has."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        for pid in (first, *children(first)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{first}").exists() and "Z" not in Path(f"/proc/{first}/stat").read_text().split(")")[1]:
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink()

    def remove(self):
        with contextlib.suppress(RuntimeError):
            self.stop("immediate")
        shutil.rmtree(self.folder)

    @contextlib.contextmanager
    def standby(self, folder):
        """A synchronous standby, as far as commits see: it has the log on its disk, in a folder."""
        folder.mkdir(exist_ok=True)
        options = "--synchronous", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-D", folder
        with (folder.with_suffix(".log")).open("ab") as log:
            process = subprocess.Popen([programs() / "pg_receivewal", *options], stdout=log, stderr=log)
        try:
            self.wait_for("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND flush_lsn IS NOT NULL")
            yield
        finally:
            process.kill()
            process.wait()
            self.wait_for("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_replication)")

    def wait_for(self, query):
        """The rows of a query, once there are some."""
        last = time.monotonic() + PATIENCE
        while not (rows := self.execute(query)):
            assert time.monotonic() < last, query
            time.sleep(0.02)
        return rows

    def execute(self, statement, values=(), database="postgres"):
        """A statement by the owner of the server."""
        with psycopg.connect(self.address.replace("dbname=postgres", f"dbname={database}"), autocommit=True) as found:
            cursor = found.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def dump(self, schema):
        """The SQL that makes a schema anew."""
        return self._run("pg_dump", "-h", "127.0.0.1", "-p", self.port, "-U", USER, "-n", f'"{schema}"', "postgres")

    def restore(self, text):
        """Run what :meth:`dump` gave."""
        command = as_user(
            programs() / "psql", "-h", "127.0.0.1", "-p", self.port, "-U", USER, "-v", "ON_ERROR_STOP=1", "-q"
        )
        subprocess.run([*command, "postgres"], input=text, text=True, check=True, capture_output=True, timeout=PATIENCE)


def children(pid):
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return list(map(int, found))
