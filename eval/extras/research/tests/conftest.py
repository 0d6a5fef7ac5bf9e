"""A folder with sources, the scripts as a user calls them, and scripted judges: the core's."""

from tests.formats.conftest import desk as desk
from tests.formats.conftest import desk_class as desk_class
from tests.judging.conftest import scripted as scripted
from tests.scripts.conftest import finished as finished
from tests.scripts.judging.conftest import server as server
from tests.scripts.labelling.conftest import tool as tool
