import pytest

from dpfast._support.errors import DataError
from dpfast._support.output_folder import OutputFolder


def test_folder_writes_nothing_before_write(tmp_path):
    folder = OutputFolder(tmp_path / "new" / "deep")
    folder.add("a.txt", "text")
    folder.add("b.bin", b"bytes")
    assert not folder.path.parent.exists()
    assert [x.name for x in folder.write()] == ["a.txt", "b.bin"]
    assert (folder.path / "a.txt").read_text() == "text"
    assert (folder.path / "b.bin").read_bytes() == b"bytes"


def test_folder_overwrites_whole_files_and_leaves_no_temporary_ones(tmp_path):
    for content in ("first and longer", "second"):
        folder = OutputFolder(tmp_path)
        folder.add("a.txt", content)
        folder.write()
    assert [(x.name, x.read_text()) for x in tmp_path.iterdir()] == [("a.txt", "second")]


def test_all_files_are_written_or_none(tmp_path):
    folder = OutputFolder(tmp_path)
    folder.add("a.txt", "text")
    folder.add("b.txt", "text")
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(
        DataError, match=r"cannot write to the folder .*b.txt is there, and no regular file; choose another one"
    ):
        folder.write()
    assert [x.name for x in tmp_path.iterdir()] == ["b.txt"]


def test_links_are_not_replaced(tmp_path):
    (tmp_path / "real.txt").write_text("kept")
    (tmp_path / "a.txt").symlink_to(tmp_path / "real.txt")
    folder = OutputFolder(tmp_path)
    folder.add("a.txt", "text")
    with pytest.raises(DataError, match=r"a.txt is there, and no regular file"):
        folder.write()
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "kept"


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write to the folder .*file"):
        OutputFolder(tmp_path / "file" / "sub")
    with pytest.raises(DataError, match="cannot write"):
        OutputFolder(tmp_path / "file")
