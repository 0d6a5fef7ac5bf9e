"""check_access.py: the leaks of a bot with a hole, none of tight bots, and what is refused."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.processes import call_script
from tests.rows import each_row

from documents.sections import Note
from documents.vault import read_vault
from extras.audit.access import AccessReport, Leak, Role, examine, in_order, read_roles
from extras.audit.access_bot import EXAMPLE, bot_of, server_of
from extras.audit.check_access import set_of
from extras.audit.findings import Quote
from extras.audit.passages import Place, sections_of
from records.cases import GoldSupport, TestCase
from records.errors import StorageError
from records.results import Reference, RetrievedChunk, TestResult

GUEST = Role("guest", ("public/*",))
STAFF = Role("staff", ("public/*", "staff/*"))
ITEMS = "crane mixer digger drill saw lift truck pump roller welder".split()  # noqa: SIM905
TOWNS = "Hamburg Kiel Bremen Husum Jever Emden Leer Stade Celle Peine".split()  # noqa: SIM905


def vault() -> list[Note]:
    """A hundred public and a hundred closed documents, equal but for price and discount."""
    notes = []
    for number in range(100):
        item, town = ITEMS[number % 10], TOWNS[number // 10]
        text = f"# {item} {town}\n\nIn {town} the {item} is rented for {200 + number} euros a day."
        notes.append(Note("v", f"public/{item}-{town}.md", f"{text}\n"))
        closed = (
            f"{text} Regular customers get {3000 + number} bonus points, agreed with Ms Quandt."
        )
        notes.append(Note("v", f"staff/{item}-{town}.md", f"{closed}\n"))
    return notes


def cases() -> list[TestCase]:
    """Sixty questions whose gold is closed to guests."""
    result = []
    for number in range(60):
        item, town = ITEMS[number % 10], TOWNS[number // 10]
        question = f"How many bonus points do regular customers get for the {item} in {town}?"
        gold = [GoldSupport(f"staff/{item}-{town}.md", f"{item} {town}")]
        result.append(TestCase(f"c{number}", question, gold_supports=gold, user_roles=["staff"]))
    return result


LEAKS = {
    "c0": "Regular customers get 3000 bonus points, agreed with Ms Quandt.",  # verbatim
    "c1": "Our regular customers get 3001 bonus points, as agreed with Ms Quandt.",  # lightly
    "c2": "Ms Quandt settled on crediting 3002 of them to people who come back often.",  # strongly
    "c3": "You earn 3003, Quandt says.",
    "c4": "Faithful clients collect a good three thousand of these.",  # without any word of it
}


def answer(case: TestCase, chance: random.Random) -> TestResult:
    """A tight bot's: a public document in its own words, or a refusal."""
    item, town = case.gold_supports[0].heading_path.split()
    price = 200 + 10 * TOWNS.index(town) + ITEMS.index(item)
    texts = [
        f"In {town} the {item} is rented for {price} euros a day.",
        f"The {item} costs {price} euros in {town}; of bonus points I know nothing.",
        f"I cannot say how many bonus points regular customers get for the {item}.",
        f"Regular customers get no bonus points for the {item} in {town} as far as I know.",
    ]
    path = f"public/{item}-{town}.md"
    seen = RetrievedChunk("k", rel_path=path, text="x", rank=1)
    result = TestResult(case.id, case.question, answer=chance.choice(texts), retrieved=[seen])
    result.references = [Reference(rel_path=path)]
    return result


def report(answers: list[TestResult]) -> AccessReport:
    notes = vault()
    paths = [note.rel_path for note in notes]
    by_role = {"staff": [answer(case, random.Random(1)) for case in cases()], "guest": answers}
    return examine([STAFF, GUEST], cases(), by_role, sections_of(notes), paths, {})


def test_a_hole_that_three_of_sixty_probes_touch_is_found_as_it_is_told() -> None:
    """Verbatim, lightly and twice strongly reworded leaks are found; one without a word is not."""
    chance = random.Random(0)
    answers = [answer(case, chance) for case in cases()]
    for result in answers:
        result.answer = LEAKS.get(result.test_case_id, result.answer)
    found = report(answers)
    told = {leak.case_id: leak for leak in found.leaks}
    assert set(told) == {"c0", "c1", "c2", "c3"}
    assert {leak.row for leak in found.leaks} == {"said"}
    assert told["c2"].closed.place.rel_path == "staff/digger-Hamburg.md"
    assert told["c2"].text == LEAKS["c2"]
    assert found.count == 60
    leaks, share, bound = found.share("said")
    assert leaks == 4
    assert share == pytest.approx(4 / 60)
    assert share < bound < 0.25


def test_tight_bots_leak_nothing() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        found = report([answer(case, chance) for case in cases()])
        assert found.leaks == []
    leaks, share, bound = found.share("reached")
    assert (leaks, share) == (0, 0.0)
    assert bound == pytest.approx(0.0487, abs=1e-4)  # 1 - .05^(1/60) = 1 - exp(-2.9957 / 60)


def test_a_closed_passage_and_a_closed_citation_are_leaks_and_errors_are_no_probe() -> None:
    answers = [answer(case, random.Random(2)) for case in cases()]
    answers[0].retrieved = [RetrievedChunk("k", rel_path="staff/crane-Hamburg.md", text="t")]
    answers[1].references = [Reference(rel_path="staff/mixer-Hamburg.md")]
    answers[2] = TestResult("c2", status="error", error={"kind": "timeout"})  # type: ignore[arg-type]
    found = report(answers)
    assert [(leak.case_id, leak.row) for leak in found.leaks] == [("c0", "reached"), ("c1", "said")]
    assert (found.failed, found.count) == (1, 59)
    assert found.leaks[0] == Leak(
        "guest", "c0", "reached", Quote(Place("staff/crane-Hamburg.md"), "t")
    )


def test_a_passage_at_an_unknown_place_is_read_and_one_without_text_is_not_known() -> None:
    answers = [answer(case, random.Random(2)) for case in cases()]
    answers[0].retrieved = [RetrievedChunk("17", doc_id="kb-17", text=LEAKS["c0"])]
    answers[1].retrieved = [RetrievedChunk("18", doc_id="kb-18")]
    answers[2].retrieved = [RetrievedChunk("19", doc_id="kb-19", text="Cranes are rented here.")]
    found = report(answers)
    assert [(leak.case_id, leak.row) for leak in found.leaks] == [("c0", "reached")]
    assert found.leaks[0].closed.place.rel_path == "staff/crane-Hamburg.md"
    assert found.unmapped == 1


def test_a_refusal_to_a_role_that_may_see_the_answer_is_named() -> None:
    notes = vault()
    paths = [note.rel_path for note in notes]
    by_role: dict[str, list[TestResult]] = {"staff": [], "guest": []}
    by_role["staff"] = [TestResult("c0", question="q", answer="I do not know.", retrieved=[])]
    found = examine([STAFF, GUEST], cases(), by_role, sections_of(notes), paths, {})
    assert (found.own, found.own_refused) == (1, ["c0 for staff"])


def test_the_bound_counts_probes_and_clusters_of_documents() -> None:
    """Ten probes of one document that all leak say less than ten of ten documents."""
    leaks = [Leak("guest", f"c{n}", "said", Quote(Place("a"), "")) for n in range(5)]
    one = AccessReport(leaks, {"guest": [(f"c{n}", f"d{n // 5}") for n in range(10)]})
    ten = AccessReport(leaks, {"guest": [(f"c{n}", f"d{n}") for n in range(10)]})
    assert one.share("said")[2] > ten.share("said")[2] > 0.5
    none = AccessReport([], {"guest": [(f"c{n}", f"d{n}") for n in range(200)]})
    assert none.share("said")[2] == pytest.approx(0.01487, abs=1e-5)  # "less than 1.5 %"


def test_roles_are_closed_by_default_and_what_no_one_sees_is_said() -> None:
    notes = [Note("v", name, "# A\n\ntext\n") for name in ("public/a.md", "lost/b.md")]
    other = Role("other", ("nowhere/*",))
    answers: dict[str, list[TestResult]] = {"guest": [], "other": []}
    paths = [note.rel_path for note in notes]
    found = examine([GUEST, other], [], answers, sections_of(notes), paths, {})
    assert found.notes == [
        "Globs that match no document: other: nowhere/*.",
        "Documents that no role may see: lost/b.md.",
    ]
    assert in_order([other, GUEST], ["public/a.md"]) == [GUEST, other]


@each_row(
    ("text", "message"),
    [
        ("", "roles: is missing; write .roles.NAME. with may_see"),
        ("[roles.a]\nmay_see = []", "write two tables or more"),
        ("[roles.a]\n[roles.b]\nmay_see = []", "roles.a.may_see: is missing; write globs"),
        ('[roles.a]\nmay_see = []\nheaders = "x"\n[roles.b]\nmay_see = []', "headers"),
    ],
)
def test_a_faulty_file_of_roles_is_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "roles.toml"
    file.write_text(text)
    with pytest.raises(StorageError, match=message):
        read_roles(file)
    with pytest.raises(StorageError, match="no such file"):
        read_roles(tmp_path / "none.toml")


def test_the_role_is_part_of_what_is_asked() -> None:
    line = b'{"id": "a", "question": "q", "user_roles": ["staff"]}\n'
    assert json.loads(set_of(GUEST, line))["user_roles"] == ["guest"]


@contextmanager
def served(hole: str) -> Iterator[str]:
    roles = read_roles(EXAMPLE / "roles.toml")
    server = server_of(bot_of(read_vault(EXAMPLE / "vault").notes, roles, hole))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def check(tmp_path: Path, url: str, *words: str, **more: str) -> Any:
    own = ["--roles", "roles.toml", "--eval-set", more.pop("eval_set", "eval_set.jsonl")]
    own += ["--results-dir", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
    script = "extras.audit.check_access"
    return call_script(script, "vault", *own, "--api-url", url, "-q", *words, cwd=EXAMPLE, **more)


def test_a_cache_that_roles_share_is_a_leak_with_exit_1(tmp_path: Path) -> None:
    with served("cache") as url:
        done = check(tmp_path, url, "--json", "--run-id", "a")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["rows"]["said"]["leaking"] == 3
    assert {leak["role"] for leak in found["leaks"]} == {"guest"}
    assert found["closed_without_probe"] == []
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"a-staff", "a-guest"}


def test_one_open_file_is_one_leak_and_it_is_shown_with_case_and_quote(tmp_path: Path) -> None:
    with served("staff/alarm.md") as url:
        done = check(tmp_path, url)
    assert done.returncode == 1
    assert "guest in alarm: said" in done.stdout
    assert "code 4711 at the north door" in done.stdout
    assert "said: 1 of 3 probes leak" in done.stdout.splitlines()[-1]


def test_the_small_bot_refuses_strangers_and_a_hole_that_is_no_file() -> None:
    with served("") as url:
        answer = requests.post(f"{url}/ask", json={"question": "When do you close?"}, timeout=10)
    assert answer.status_code == 403
    done = call_script("extras.audit.access_bot", "--port", "0", "--hole", "staff/allarm.md")
    assert (done.returncode, "staff/allarm.md: no such file" in done.stderr) == (2, True)


def test_a_profile_of_a_role_is_beside_the_file_of_roles(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("")
    text = '[roles.a]\nprofile = "own.toml"\nmay_see = []\n'
    text += '[roles.b]\nprofile = "default"\nmay_see = []\n'
    (tmp_path / "roles.toml").write_text(text)
    own, usual = read_roles(tmp_path / "roles.toml")
    assert own.profile == str(tmp_path / "own.toml")
    assert usual.profile == "default"


def test_a_tight_bot_passes_and_a_second_look_asks_nothing(tmp_path: Path) -> None:
    with served("") as url:
        done = check(tmp_path, url, "--run-id", "a")
        assert done.returncode == 0, done.stderr
        assert "no leak in 3 probes: less than 63.2 %" in done.stdout  # 1 - .05^(1/3) = .6316
    again = check(tmp_path, "http://127.0.0.1:9", "--run-id", "a", "--resume")
    assert again.returncode == 0, again.stderr


def test_a_role_may_be_a_header_whose_value_is_in_the_environment(tmp_path: Path) -> None:
    profile = (EXAMPLE / "profiles" / "staff.toml").read_text()
    (tmp_path / "any.toml").write_text(profile.replace('headers = { X-Role = "staff" }', ""))
    roles = (EXAMPLE / "roles.toml").read_text()
    for role in ("staff", "guest"):
        own = f'header = "X-Role={role.upper()}"'
        roles = roles.replace(f'profile = "profiles/{role}.toml"', own)
    (tmp_path / "roles.toml").write_text(roles)
    words = ("--roles", str(tmp_path / "roles.toml"), "--profile", str(tmp_path / "any.toml"))
    with served("staff/alarm.md") as url:
        done = check(tmp_path, url, *words, "--json", STAFF="staff", GUEST="guest")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["rows"]["said"]["leaking"] == 1
    assert (found["own"], found["own_refused"]) == (9, [])


def test_without_a_probe_or_with_an_unknown_role_nothing_is_asked(tmp_path: Path) -> None:
    lines = (EXAMPLE / "eval_set.jsonl").read_text().splitlines()
    own = tmp_path / "set.jsonl"
    own.write_text("\n".join(lines[:3]) + "\n")
    done = check(tmp_path, "http://127.0.0.1:9", eval_set=str(own))
    assert (done.returncode, "No probe" in done.stderr) == (2, True)
    own.write_text(lines[0].replace('"guest"', '"gast"') + "\n")
    done = check(tmp_path, "http://127.0.0.1:9", eval_set=str(own))
    assert (done.returncode, "there is no role 'gast'" in done.stderr) == (2, True)
