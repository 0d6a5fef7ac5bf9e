"""The run to be scored, of the core's tests."""

from tests.scripts.conftest import finished as finished
from tests.scripts.eval_suite.conftest import suite as suite
from tests.scripts.eval_suite.conftest import write as write
