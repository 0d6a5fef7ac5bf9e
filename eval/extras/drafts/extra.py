"""Drafts of questions from your documents, by rules or by a judge, for a person to accept."""
