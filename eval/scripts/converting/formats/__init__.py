"""One file a format.

A module has ``NAME`` and ``ABOUT``, and one or both of

- ``read(sources, wanted, notes)``: yields ``Item`` after ``Item``;
- ``write(stored, target, notes)``: writes files into the folder ``target``, or, when the module
  sets ``ONE_FILE``, the file ``target``.
"""
