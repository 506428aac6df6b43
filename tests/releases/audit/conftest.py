import pytest

from dpfast.releases import batch
from dpfast.releases.model_check.verdict import FirstPruned, check_whole


@pytest.fixture(scope="module", autouse=True)  # one of a package would end with the session
def releases_unchecked():
    """What an audit releases is not compared with the model, which takes half of its time: it looks at noise alone.

    Audits run as a whole in the tests of the command and of the pages.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "check_whole", lambda evidence: check_whole(FirstPruned(evidence.model, evidence.steps)))
        yield
