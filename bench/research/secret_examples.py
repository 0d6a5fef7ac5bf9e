r"""Measure the secrets detector on the published examples of gitleaks and trufflehog.

In: checkouts of the two projects (`FOLDER/gitleaks`, `FOLDER/trufflehog`; one that is absent is
left out). Out: by project and half, the share of positive examples in which the credential is found
and the share of negative examples in which anything is. Nothing of the projects is kept: their
tests are read where they lie. A detector belongs to the half `open` or `sealed` by the hash of its
maker's name; rules are made on the open half, and `--ids` names rows of that half alone.

Positive is what the project's own test must find, with the value that it must find; negative what
the test must not. gitleaks' samples that are drawn from a pattern are drawn here, by a fixed seed.
trufflehog's "key out of prefix range" is neither: it holds a valid key. The published keys that
gitleaks allows one by one are no find in its negatives. A negative example of one maker may still
be a credential: nearly all of trufflehog's are a key with one sign changed or one sign too many,
under the name of a key, so the two projects are printed apart.

\b
Examples:
  python bench/research/secret_examples.py ~/checkouts
  python bench/research/secret_examples.py ~/checkouts --ids
"""

from __future__ import annotations

import hashlib
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

from guardrails.secrets import find_secrets

_TOKEN = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/)|(?P<raw>`[^`]*`)|(?P<text>\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>:=|\.\.\.|'(?:\\.|[^'\\])'|\d+|[^\s])",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_CLASSES = {
    "Numeric": "[0-9]",
    "Hex": "[a-f0-9]",
    "AlphaNumeric": "[a-z0-9]",
    "AlphaNumericExtendedShort": "[a-z0-9_-]",
    "AlphaNumericExtended": "[a-z0-9=_-]",
    "AlphaNumericExtendedLong": "[a-z0-9/=_+-]",
}
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_EXACT = re.compile(r"MustCompile\(`([\w-]{20,})`\)")
_MOST = 40  # repetitions of a pattern without an end


@dataclass(frozen=True)
class SecretExample:
    """One text of a project's tests; `values` are the credentials that its test must find."""

    project: str
    maker: str
    text: str
    label: int
    values: tuple[str, ...] = ()
    published: frozenset[str] = frozenset()

    @property
    def half(self) -> str:
        """`open` or `sealed`, by the hash of the maker's name."""
        name = re.sub(r"[^a-z0-9]", "", self.maker.lower())
        return "open" if hashlib.sha256(name.encode()).digest()[0] < 128 else "sealed"


def _drawn(pattern: str, seed: str) -> str:
    """A string that a regular expression without look-around matches, by a fixed seed."""
    from re import _parser as parser  # type: ignore[attr-defined]

    chance = random.Random(f"{seed} {pattern}")

    def draw(nodes: Any) -> str:
        return "".join(one(str(kind), value) for kind, value in nodes)

    def one(kind: str, value: Any) -> str:
        if kind == "LITERAL":
            return chr(value)
        if kind == "IN":
            signs = [sign for part, what in value for sign in members(str(part), what)]
            return chance.choice(signs)
        if kind == "MAX_REPEAT":
            least, most, inner = value
            most = min(int(most), max(int(least), _MOST))
            return "".join(draw(inner) for _ in range(chance.randint(least, most)))
        if kind == "SUBPATTERN":
            return draw(value[3])
        if kind == "BRANCH":
            return draw(chance.choice(value[1]))
        return ""

    def members(kind: str, value: Any) -> str:
        if kind == "RANGE":
            return "".join(map(chr, range(value[0], value[1] + 1)))
        if kind == "CATEGORY":
            return "0123456789" if "DIGIT" in str(value) else "abcdefghijABCDEFGHIJ0123456789_"
        return chr(value) if kind == "LITERAL" else ""

    return draw(parser.parse(re.sub(r"\(\?[a-z-]+\)", "", pattern)))


@dataclass
class _Reader:
    """Reads the values of the strings, lists and structs of a Go file; None is what it cannot."""

    tokens: list[tuple[str, str]]
    seed: str
    samples: Sequence[str] = ()
    at: int = 0
    names: dict[str, Any] = field(default_factory=dict)

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index][1] if index < len(self.tokens) else ""

    def expression(self) -> Any:
        value = self._operand()
        while self.peek() == "+":
            self.at += 1
            other = self._operand()
            both = isinstance(value, str) and isinstance(other, str)
            value = value + other if both else None
        if self.peek() == "...":
            self.at += 1
        return value

    def _operand(self) -> Any:
        kind, shown = self.tokens[self.at] if self.at < len(self.tokens) else ("sign", "")
        if kind == "sign" and shown in ")}],;":
            return None
        self.at += 1
        if kind == "raw":
            return shown[1:-1]
        if kind == "text":
            return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), shown[1:-1])
        if shown in {"[", "map"}:
            return self._of_type()
        if shown == "{":
            self.at -= 1
            return self._listed("{", "}")
        if kind == "name":
            return self._named(shown)
        return None

    def _of_type(self) -> Any:
        """What follows the name of a type, `[]string{…}` or `[]struct{…}{…}`."""
        last = ""
        while self.at < len(self.tokens) and (
            self.peek() in {"[", "]", "*"} or self.tokens[self.at][0] == "name"
        ):
            last = self.peek()
            self.at += 1
        if last == "struct":
            self._listed("{", "}")
            return None
        return self._listed("{", "}")

    def _named(self, name: str) -> Any:
        if self.peek() == "(":
            return self._call(name.rpartition(".")[2], self._listed("(", ")"))
        if self.peek() == "{" and "." in name:
            self._listed("{", "}")
            return None
        return self.names.get(name)

    def _listed(self, opening: str, closing: str) -> Any:
        """A list of values, or a dict when they have keys; leaves the reader after its end."""
        if self.peek() != opening:
            return []
        self.at += 1
        values: list[Any] = []
        keyed: dict[Any, Any] = {}
        while self.at < len(self.tokens) and self.peek() != closing:
            before, key = self.at, self.peek()
            value = self.expression()
            if self.peek() == ":":
                self.at += 1
                keyed[key] = self.expression()
            else:
                values.append(value)
            if self.at == before or self.peek() == ",":
                self.at += 1
        self.at += 1
        return keyed or values

    def _call(self, name: str, values: Any) -> Any:
        if not isinstance(values, list):
            return None
        if name == "append" and values and isinstance(values[0], list):
            more = values[1:]
            return values[0] + [
                x for one in more for x in (one if isinstance(one, list) else [one])
            ]
        if name == "Hex8_4_4_4_12":
            return _UUID
        if not values or not all(isinstance(value, str) for value in values):
            return None
        if name in _CLASSES:
            return f"{_CLASSES[name]}{{{values[0]}}}"
        if name in {"NewSecret", "newPlausibleSecret", "NewSecretWithEntropy"}:
            return _drawn(values[0], self.seed)
        if name == "GenerateSampleSecret" and len(values) == 2:
            return f'{values[0]}_api_token = "{values[1]}"'
        if name == "GenerateSampleSecrets" and len(values) == 2:
            return [self._sample(sample, *values) for sample in self.samples]
        if name == "Sprintf" and values[0].count("%s") == len(values) - 1:
            return values[0].replace("%%", "%") % tuple(values[1:])
        return values[0] if name in {"TrimSpace", "string", "byte"} else None

    def _sample(self, sample: str, maker: str, secret: str) -> str:
        filled = sample.replace("{i}", maker).replace("{I}", maker.upper())
        return filled.replace("{s}", secret)

    def statements(self) -> Iterator[tuple[str, Any]]:
        """Assignments, remembered, and each call and struct of a test with what it holds."""
        while self.at < len(self.tokens):
            kind, shown = self.tokens[self.at]
            if kind == "name" and self.peek(1) in {":=", "="} and self.peek(2) != "=":
                self.at += 2
                self.names[shown] = self.expression()
            elif kind == "name" and shown.rpartition(".")[2].startswith("Validate"):
                self.at += 1
                yield "validate", self._listed("(", ")")
            elif shown == "{" and self.peek(1) == "name" and self.peek(2) == ":":
                yield "case", self._listed("{", "}")
            else:
                self.at += 1


def _reader(path: Path, samples: Sequence[str] = ()) -> _Reader:
    source = path.read_text(encoding="utf-8", errors="replace")
    found = ((str(m.lastgroup), m[0]) for m in _TOKEN.finditer(source) if m.lastgroup != "skip")
    return _Reader(list(found), path.stem, samples)


def _texts(value: Any) -> Iterator[str]:
    values = value.values() if isinstance(value, dict) else value or ()
    for one in values:
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            yield from _texts(one)


def read_gitleaks(folder: Path) -> Iterator[SecretExample]:
    """The examples of each rule under `cmd/generate/config/rules`."""
    base = folder / "cmd" / "generate" / "config"
    utils = base / "utils" / "generate.go"
    samples: list[str] = []
    if utils.is_file():
        reader = _reader(utils)
        for _ in reader.statements():
            pass
        samples = list(_texts(reader.names.get("samples")))
    for path in sorted((base / "rules").glob("*.go")):
        published = frozenset(_EXACT.findall(path.read_text(encoding="utf-8")))
        for kind, found in _reader(path, samples).statements():
            if kind == "validate" and isinstance(found, list) and len(found) == 3:
                for label, side in ((1, found[1]), (0, found[2])):
                    for text in _texts(side):
                        yield SecretExample("gitleaks", path.stem, text, label, (), published)


def read_trufflehog(folder: Path) -> Iterator[SecretExample]:
    """The examples of each detector under `pkg/detectors`."""
    base = folder / "pkg" / "detectors"
    for path in sorted(base.rglob("*_test.go")):
        if path.stem.endswith("integration_test"):
            continue
        maker = path.relative_to(base).parts[0]
        for kind, found in _reader(path).statements():
            if kind != "case" or not isinstance(found, dict) or "want" not in found:
                continue
            name, text, want = (found.get(key) for key in ("name", "input", "want"))
            if not isinstance(name, str) or not isinstance(text, str):
                continue
            values = tuple(value for value in _texts(want) if value in text)
            if values:
                yield SecretExample("trufflehog", maker, text, 1, values)
            elif not want and name.lower().startswith("invalid"):
                yield SecretExample("trufflehog", maker, text, 0)


def found(example: SecretExample) -> bool:
    """Whether a credential is found; for a labelled value, at its place."""
    finds = [
        (start, end)
        for _, start, end, _ in find_secrets(example.text)
        if example.label or example.text[start:end] not in example.published
    ]
    if not example.values:
        return bool(finds)
    spans = [
        (match.start(), match.end())
        for value in example.values
        for match in re.finditer(re.escape(value), example.text)
    ]
    return any(a < end and start < b for a, b in finds for start, end in spans)


READERS = {"gitleaks": read_gitleaks, "trufflehog": read_trufflehog}


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--ids", is_flag=True, help="Name the rows of the open half that are wrong.")
def main(folder: Path, ids: bool) -> None:
    """Print recall and false finds by project and half."""
    rows: list[SecretExample] = []
    for project, read in READERS.items():
        if (folder / project).is_dir():
            rows += dict.fromkeys(read(folder / project))
        else:
            click.echo(f"absent, left out: {folder / project}", err=True)
    for project in (*READERS, "both"):
        for half in ("open", "sealed"):
            for label, title in ((1, "found"), (0, "negatives flagged")):
                side = [
                    row
                    for row in rows
                    if project in {row.project, "both"} and (row.half, row.label) == (half, label)
                ]
                hits = [found(row) for row in side]
                makers: dict[str, list[bool]] = {}
                for row, hit in zip(side, hits, strict=True):
                    makers.setdefault(row.maker, []).append(hit)
                mean = sum(sum(m) / len(m) for m in makers.values()) / max(1, len(makers))
                share = sum(hits) / max(1, len(hits))
                click.echo(
                    f"{project:<11}{half:<7}{title:<18}{sum(hits):>6} of {len(side):<6}"
                    f"{share:.3f}  by maker {mean:.3f} of {len(makers)}"
                )
                if ids and half == "open" and project != "both":
                    for row, hit in zip(side, hits, strict=True):
                        if hit != bool(label):
                            click.echo(f"    {row.maker}: {row.text[:300]!r} {row.values}")


if __name__ == "__main__":
    main()
