"""Human-labelled data sets, one loader a set, in three common shapes (see ``rows.py``)."""
