import pytest

from dpfast.cli.main import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["desing"], "unknown command 'desing'; did you mean design? The commands are example,"),
        (["design", "--epsilom", "1"], "unknown option --epsilom; did you mean --epsilon?"),
        (["design", "--max_change=2"], "unknown option --max_change; did you mean --max-change?"),
        (["design", "--tol", "1"], "unknown option --tol; did you mean --tolerance?"),
        (["show", "--nothing-like-it"], "unknown option --nothing-like-it\n"),
        (["release", "-", "--streams", "3"], "unknown option --streams; did you mean --streams-per-person?"),
    ],
)
def test_an_unknown_option_is_named_with_the_one_that_was_meant(capsys, words, said):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
