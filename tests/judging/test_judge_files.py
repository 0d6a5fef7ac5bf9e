"""Judges as files: what they may say, what is refused and where, what is written."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from judging.connect import JudgeOptions
from judging.cost import Prices
from judging.identity import JudgeError
from judging.judge_files import judge_settings, read_judge, save_judge
from records.errors import StorageError

WHOLE = """\
schema = 1
description = "Our judge"
server = "http://localhost:11434/v1"
model = "m:8b"
api_key = "OUR_KEY"
revision = "r1"
unpinned = true
alias = ["m:8b=m", "n = o"]
temperature = 0.5
mode = "tool"
thinking_tokens = 4000
concurrency = 2
rpm = 30
tpm = 1e5
timeout = 9.5
retries = 0
embedding_model = "small"
reasoning_effort = "low"
min_kappa = 0.5
min_balanced_accuracy = 0.7

[extra_body]
top_k = 5
chat_template_kwargs = { enable_thinking = false }

[prices]
prompt = 1.0
completion = 2
"""

EXTRA = {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}}

FIELDS: dict[str, Any] = {
    **{"judge": "http://localhost:11434/v1", "model": "m:8b", "api_key": "OUR_KEY"},
    **{"revision": "r1", "unpinned": True, "aliases": (("m:8b", "m"), ("n", "o"))},
    **{"temperature": 0.5, "mode": "tool", "thinking_tokens": 4000, "reasoning_effort": "low"},
    **{"extra_body": EXTRA, "concurrency": 2, "rpm": 30, "tpm": 1e5, "timeout": 9.5, "retries": 0},
    **{"prices": Prices(1.0, 2.0), "embedding_model": "small"},
    **{"min_kappa": 0.5, "min_balanced_accuracy": 0.7},
}
MEANT = JudgeOptions(**FIELDS)


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUR_KEY", "sk-very-secret-value")
    folder = tmp_path / "eval" / "judges"
    folder.mkdir(parents=True)
    (folder / "ours.toml").write_text(WHOLE)
    return folder


def test_a_name_or_a_path_is_all_that_the_file_says(judges: Path) -> None:
    by_name = judge_settings("ours", folder=judges)
    assert JudgeOptions.of(by_name, {}) == MEANT
    assert judge_settings(str(judges / "ours.toml")) == by_name


def test_every_key_can_be_set_for_one_call(judges: Path) -> None:
    plain = {k: v for k, v in tomllib.loads(WHOLE).items() if isinstance(v, (str, float, int))}
    for outside in ("schema", "description", "server", "model", "unpinned"):
        del plain[outside]
    pairs = [f"{key}={value}" for key, value in plain.items()]
    pairs += [f"extra_body={json.dumps(EXTRA)}", "unpinned=true", "alias=m:8b=m, n = o"]
    pairs += ["prices.prompt=1", "prices.completion=2"]
    settings = judge_settings("http://localhost:11434/v1", "m:8b", pairs)
    assert JudgeOptions.of(settings, {}) == MEANT


def test_a_set_value_counts_more_than_the_file(judges: Path) -> None:
    settings = judge_settings("ours", pairs=["retries=1", "retries=7"], folder=judges)
    assert (settings["retries"], settings["temperature"]) == (7, 0.5)


def test_what_is_saved_is_what_was_meant(judges: Path) -> None:
    settings = judge_settings("ours", folder=judges)
    path = save_judge("copy", settings, judges)
    assert read_judge(path) == settings
    assert "sk-very-secret-value" not in path.read_text()
    assert save_judge("copy", settings, judges) == path
    with pytest.raises(StorageError, match="exists already"):
        save_judge("copy", settings | {"retries": 9}, judges)
    assert read_judge(path) == settings


def test_paths_count_from_the_files_own_folder(
    judges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices.toml").write_text('["m:8b"]\nprompt = 3\ncompletion = 4\n')
    weights = tmp_path / "weights.gguf"
    weights.touch()
    monkeypatch.chdir(tmp_path)
    pairs = ["prices=prices.toml", "file=weights.gguf"]
    path = save_judge("paths", judge_settings("local", "m:8b", pairs), judges)
    written = tomllib.loads(path.read_text())
    assert (written["file"], written["prices"]) == ("../../weights.gguf", "../../prices.toml")
    monkeypatch.chdir("/")
    options = JudgeOptions.of(read_judge(path), {})
    assert options.prices == Prices(3.0, 4.0)
    assert options.file is not None
    assert options.file.samefile(weights)


@each_row(
    ("line", "told"),
    [
        ("temperatur = 1", ":5: temperatur: is unknown; write temperature"),
        ("temperature = 3", ":5: temperature: must be a number from 0 up to 2"),
        ("temperature = true", ":5: temperature: must be a number"),
        ("temperature = nan", ":5: temperature: must be a number"),
        ("timeout = 0", ":5: timeout: must be a number above 0, up to 86400"),
        ("concurrency = 2.5", ":5: concurrency: must be a whole number from 1 up to 512"),
        ('mode = "best"', ":5: mode: must be one of json_schema, "),
        ('unpinned = "yes"', ":5: unpinned: must be true or false"),
        ('alias = "a=b"', ":5: alias: must be a list of texts"),
        ('alias = ["a"]', ":5: alias: must be ASKED=ANSWERED"),
        ('api_key = "sk-abcdef"', ":5: api_key: takes the name of an environment variable"),
        ('revision = "a\\nb"', ":5: revision: must be one line of text"),
        ("extra_body = 3", ":5: extra_body: must be a table"),
        ("[extra_body]\ntools = []", ":6: extra_body.tools: is set by the toolkit"),
        ("[extra_body]\na = 1\nmax_tokens = 9", ":7: extra_body.max_tokens: .* thinking_tokens"),
        ("[prices]\nprompt = -1\ncompletion = 1", ":6: prices.prompt: must be a number"),
        ("[prices]\nprompt = 1", ":5: prices.completion: is missing"),
        ("[prices]\nprompt = 1\ncompletion = 1\ninput = 2", ":8: prices.input: is unknown"),
    ],
)
def test_a_bad_key_is_a_sentence_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "j.toml"
    path.write_text(f'schema = 1\n# a note\n\nserver = "http://h/v1"\n{line}\n')
    with pytest.raises(StorageError) as caught:
        read_judge(path)
    assert re.search(re.escape(str(path)) + told.replace("[", r"\["), caught.value.message)
    assert "abcdef" not in caught.value.message


@each_row(
    ("server", "told"),
    [
        ("http://me:pass-word@h/v1", "login"),
        ("http://h/v1?key=pass-word", "query"),
        ("localhost:80", "an address such as"),
    ],
)
def test_a_server_is_an_address_without_secrets(tmp_path: Path, server: str, told: str) -> None:
    path = tmp_path / "j.toml"
    path.write_text(f'server = "{server}"\n')
    with pytest.raises(StorageError, match=rf"j\.toml:1: server: .*{told}") as caught:
        read_judge(path)
    assert "pass-word" not in caught.value.message


def test_an_address_of_azure_may_say_its_version(tmp_path: Path) -> None:
    path = tmp_path / "j.toml"
    address = "https://ours.openai.azure.com/openai/deployments/judge/chat/completions"
    path.write_text(f'server = "{address}?api-version=2024-10-21"\n')
    assert read_judge(path)["server"] == f"{address}?api-version=2024-10-21"
    for query in ("?api-version=a&key=pass-word", "?api-version="):
        path.write_text(f'server = "{address}{query}"\n')
        with pytest.raises(StorageError, match="contains a login or a query"):
            read_judge(path)
    path.write_text(f'server = "{address}"\n')
    with pytest.raises(StorageError, match=r"j\.toml:1: server: .*add \?api-version="):
        read_judge(path)


def test_a_file_names_a_judge(tmp_path: Path) -> None:
    path = tmp_path / "j.toml"
    path.write_text("temperature = 1.0\n")
    with pytest.raises(StorageError, match="server: is missing"):
        read_judge(path)
    with pytest.raises(StorageError, match=r"no such file; .*--save-judge writes one"):
        judge_settings(str(tmp_path / "gone.toml"))


def test_an_unknown_name_lists_the_known_ones(judges: Path) -> None:
    with pytest.raises(JudgeError, match=r"known: local, ours\. A server is an address"):
        judge_settings("other", folder=judges)
    with pytest.raises(JudgeError, match="no such name"):
        judge_settings("../judges/ours", folder=judges)


def test_another_model_than_the_files_is_refused(judges: Path) -> None:
    with pytest.raises(JudgeError, match="names the model m:8b"):
        judge_settings("ours", "other", folder=judges)
    assert judge_settings("ours", "m:8b", folder=judges)["model"] == "m:8b"
    default = judge_settings("ours", "other", model_is_default=True, folder=judges)
    assert default["model"] == "m:8b"


@each_row(
    ("name", "settings", "told"),
    [
        ("a/b", {"model": "m"}, "a name has letters"),
        ("local", {"model": "m"}, "is not local"),
        ("j", {"temperature": 1.0}, "name the judge with --judge"),
        ("j", {"server": "http://u:p@h/v1"}, "login"),
        ("j", {"model": "m", "api_key": "AKIAPASTED"}, "no environment variable has that name"),
    ],
)
def test_what_cannot_be_saved_leaves_no_file(
    tmp_path: Path, name: str, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(StorageError, match=told) as caught:
        save_judge(name, settings, tmp_path / "judges")
    assert "AKIAPASTED" not in caught.value.message
    assert not list(tmp_path.rglob("*.toml"))
