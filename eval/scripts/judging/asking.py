"""Shared parts of the scripts that judge runs, besides judging: cost and prompts.

``plans``: what is judged, a run each. Nothing is asked, and texts are returned for the scripts to
print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from judging import prompt_files
from judging.answers import FactStore
from judging.connect import Connection, JudgeOptions, connect
from judging.cost import CostEstimate
from judging.kinds import fields_of
from judging.run import JudgingPlan, prompts_of, would_ask
from records.files import json_bytes


def fact_store(judge_options: JudgeOptions, connection: Connection) -> FactStore:
    """The facts of reference answers that this judge has found so far."""
    identity, prompt = connection.judge.identity, prompt_files.load("facts").id
    return FactStore(judge_options.cache_dir, identity, prompt, connection.withdrawn())


@dataclass(frozen=True, slots=True)
class AskingCost:
    """The expected cost of judging, the fields in each call, and who gets the answers."""

    cost: CostEstimate
    sent: dict[str, list[str]]
    recipients: str

    def lines(self) -> list[str]:
        """The recipients and their fields, a sentence each."""
        sent = [
            f"{name} sends the judge: {', '.join(fields)}." for name, fields in self.sent.items()
        ]
        return [self.recipients, *sent] if self.recipients else sent

    def json(self) -> bytes:
        """As one JSON object."""
        return json_bytes(asdict(self.cost) | {"calls": self.cost.calls, "sent": self.sent})


def expect(plans: Sequence[JudgingPlan], judge_options: JudgeOptions) -> AskingCost:
    """Count the calls that judging would make."""
    with connect(judge_options, ask_nothing=True) as connection:
        facts = fact_store(judge_options, connection)
        cost = connection.estimate(
            task for plan in plans for task in would_ask(plan, connection, facts)
        )
        recipients = connection.recipients(cost, judge_options.max_cost)
    sent = {name: fields_of(plan.kinds[name]) for plan in plans for name in plan.calls}
    return AskingCost(cost, sent, recipients)


def prompts_text(
    plans: Sequence[JudgingPlan], judge_options: JudgeOptions, case: str, *, as_json: bool = False
) -> str:
    """The messages about one case as they are sent; "" where the rules decide it.

    Raises StorageError when a run has no answer to the case."""
    with connect(judge_options, ask_nothing=True) as connection:
        facts = fact_store(judge_options, connection)
        found = [one for plan in plans for one in prompts_of(plan, connection, facts, case)]
    if as_json:
        report = [
            {"repeat": repeat, "metric": name, "messages": [dict(m) for m in task.messages]}
            for repeat, name, task in found
        ]
        return json_bytes(report).decode()
    return "".join(
        f"=== {name}, answer {repeat}: {message['role']} ===\n{message['content']}\n\n"
        for repeat, name, task in found
        for message in task.messages
    )
