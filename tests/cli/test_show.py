import pytest
from helpers.commands import refusal

import dpfast as dp
from dpfast.cli.main import main


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.json"
    dp.save(dp.zero_forcing(dp.Filter([1 / 3] * 3), dp.Privacy(2, 1e-5)), path)
    return str(path)


def test_show_says_what_a_file_guarantees(saved, capsys):
    assert main(["show", saved]) == 0
    assert "(2, 1e-05)-differential privacy" in " ".join(capsys.readouterr().out.split())


def test_show_refuses_another_file(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("when,place\n")
    assert "log.csv cannot be used: it must be JSON" in refusal(["show", str(tmp_path / "log.csv")], capsys)
