"""The run to be judged and the scripted server of the core's tests."""

from tests.scripts.conftest import finished as finished
from tests.scripts.judging.conftest import run as run
from tests.scripts.judging.conftest import server as server
