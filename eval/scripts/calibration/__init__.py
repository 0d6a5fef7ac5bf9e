"""A judge against labels of people: reading both, the report, the gate, the labelling session."""
