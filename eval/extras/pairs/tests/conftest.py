"""A scripted judge behind a real server, and two runs of twelve cases."""

from tests.judging.conftest import scripted as scripted
from tests.judging.conftest import verdicts as verdicts
from tests.scripts.conftest import finished as finished
from tests.scripts.judging.conftest import run as run
from tests.scripts.judging.conftest import server as server

from extras.pairs.tests.test_pairs import pairs as pairs
