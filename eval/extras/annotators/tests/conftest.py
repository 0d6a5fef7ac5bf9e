"""Sessions, screens and the script of the core's tests of labelling."""

from tests.labeller.conftest import cases as cases
from tests.labeller.conftest import chunks as chunks
from tests.labeller.conftest import clock as clock
from tests.labeller.conftest import events as events
from tests.labeller.conftest import files as files
from tests.labeller.conftest import session as session
from tests.labeller.screen.conftest import bench as bench
from tests.scripts.labelling.conftest import tool as tool
