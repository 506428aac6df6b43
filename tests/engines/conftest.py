import tempfile
from pathlib import Path

import pytest
from helpers import arbiters, forks
from helpers.deliveries import Delivery


@pytest.fixture
def folder(tmp_path):
    """In memory where the system can: what a process wrote outlives its death anywhere."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory):
    """So that no fork has to compile."""
    Delivery(tmp_path_factory.mktemp("compiled"), arbiters.Folder(), 0).live()


@pytest.fixture(scope="session")
def spark_classes(tmp_path_factory, compiled):
    """An archive of the classes that Spark loads: with it a life begins in half the time."""
    from helpers import spark_lives

    folder, java = tmp_path_factory.mktemp("classes"), "-XX:+UseSerialGC -Xlog:disable -XX:"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"{java}ArchiveClassesAtExit={folder / 'classes.jsa'}")
        assert forks.run(spark_lives.leave_classes, folder, arbiters.Folder()) == 0
        patch.setenv("JDK_JAVA_OPTIONS", f"{java}SharedArchiveFile={folder / 'classes.jsa'}")
        yield


@pytest.fixture(params=["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.engines)])
def arbiter(request):
    """The database that decides."""
    if request.param == "SQLite":
        return arbiters.Folder()
    return arbiters.Database(request.getfixturevalue("postgres_server").address)
