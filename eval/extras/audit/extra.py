"""What is wrong with the documents, and whether a bot shows a role what it must not see."""

BLOCKS = {"audit": "report_block:blocks"}
