"""judge_answers.py with judges of Anthropic and of a deployment of Azure, and with judges
that think for 6,000 tokens: described by a file, asked once, read from the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.judging.server import server_kinds as kinds
from tests.scripts.judging.conftest import reply_to

FILES = {
    "anthropic messages": "",
    "azure classic": "",
    "openai reasoning": 'reasoning_effort = "low"\n',
    "vllm": "thinking_tokens = 8000\n"
    "[extra_body]\nchat_template_kwargs = { enable_thinking = true }\n",
}


@pytest.fixture(
    params=[kinds.Anthropic, kinds.AzureClassic, kinds.Reasoning, kinds.VLLM],
    ids=lambda kind: str(kind.name),
)
def judge(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[kinds.OpenAI]:
    """A server that fills every form with the last verdict of its list."""
    monkeypatch.setenv("JUDGE_KEY", kinds.KEY)
    made: kinds.OpenAI = request.param()
    if made.thinks:
        made.thinks = 6000

    def fill(body: dict[str, Any]) -> Any:
        if "tools" in body:
            tool = body["tools"][0]
            schema = tool.get("input_schema") or tool["function"]["parameters"]
        else:
            schema = body["response_format"]["json_schema"]["schema"]
        fields = schema["properties"]["verdicts"]["items"]["properties"]
        if "enum" not in fields["id"]:  # the plain form: the one claim of each answer, or the two
            asked = body["messages"][-1]["content"].rpartition("claim ids: ")[2].rstrip(".\n")
            fields = {**fields, "id": {"enum": asked.split(", ")}}
            schema = json.loads(json.dumps(schema))
            schema["properties"]["verdicts"]["items"]["properties"] = fields
        form = {"json_schema": {"name": "v", "schema": schema}}
        data = reply_to({**body, "tools": [], "response_format": form | {"type": "json_schema"}})
        return kinds.ok(made.says(body, data))

    made.behave = [fill]
    yield made
    made.bot.close()


def test_a_judges_file_is_enough(run: Any, judge: kinds.OpenAI, tmp_path: Path) -> None:
    run.write()
    path = tmp_path / "ours.toml"
    path.write_text(
        f'server = "{judge.url}"\nmodel = "{judge.model}"\napi_key = "JUDGE_KEY"\n'
        f'revision = "r1"\nretries = 0\n{FILES[judge.name]}'
    )
    words = ("--judge", str(path), "--metrics", "groundedness")
    found = run.judge(*words)
    assert found["mean"]["faithfulness"] == 0.0
    config = json.loads((run.finished.run / "config.json").read_text("utf-8"))
    parameters = config["judge"]["parameters"]
    if judge.name == "openai reasoning":
        assert parameters == {"seed": 0, "reasoning_effort": "low"}
        assert all(judge.limit(body) > 8192 for body in judge.bodies if "temperature" not in body)
    if judge.name == "vllm":
        assert parameters["chat_template_kwargs"] == {"enable_thinking": True}
    asked = len(judge.bodies)
    (run.finished.run / "verdicts.jsonl").unlink()
    assert run.judge(*words)["mean"]["faithfulness"] == 0.0
    (run.finished.run / "verdicts.jsonl").unlink()
    assert run.judge(*words, "--offline")["mean"]["faithfulness"] == 0.0
    assert len(judge.bodies) == asked, "paid once"
    assert kinds.KEY not in "".join(
        file.read_text("utf-8", "replace")
        for file in run.finished.folder.rglob("*")
        if file.is_file()
    )
