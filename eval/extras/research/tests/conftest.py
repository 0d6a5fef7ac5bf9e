"""A folder with sources, and convert_data.py as a user calls it: the core's."""

from tests.formats.conftest import desk as desk
from tests.formats.conftest import desk_class as desk_class
