"""What a shell completes, asked of bash itself."""

import shutil
import subprocess
import sys

import pytest

from dpfast.cli.main import main


@pytest.fixture
def script(capsys):
    pytest.importorskip("shtab")  # comes with the extra cli
    with pytest.raises(SystemExit, match="0"):
        main(["--completion", "bash"])
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["dpfast", "le"], ["ledger"]),
        (["dpfast", "release", "--follow-"], []),
        (["dpfast", "design", "--eps"], ["--epsilon"]),
        (["dpfast", "release", "--streams-per"], ["--streams-per-person"]),
    ],
)
def test_bash_completes_commands_and_options(script, words, found):
    asked = (
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_dpfast; printf '%s\\n' ${{COMPREPLY[@]}}"
    )
    result = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True)
    assert result.stdout.split() == found


def test_a_shell_that_there_is_none_of_is_an_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--completion", "fish"])
    assert "invalid choice: 'fish'" in capsys.readouterr().err


def test_an_unknown_command_behind_it_is_one_still(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["releases", "--completion", "bash"])
    assert "unknown command 'releases'" in capsys.readouterr().err


def test_shtab_is_asked_for_by_its_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit, match="2"):
        main(["--completion", "zsh"])
    assert "pip install 'dpfast[completion]'" in capsys.readouterr().err
