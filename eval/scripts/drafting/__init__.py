"""Draft questions from a vault: sections, questions by template or by a judge, records of cases."""
