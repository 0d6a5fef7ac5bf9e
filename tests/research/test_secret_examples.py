"""Published examples of secrets are read out of the tests of the projects that publish them."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from research.secret_examples import SecretExample, found, main, read_gitleaks, read_trufflehog

KEY = "k7Qm2xVt9RzL4wBn8sHd3"

GENERATE = """package utils
func GenerateSampleSecrets(identifier string, secret string) []string {
	samples := map[string]string{
		// TODO: "not this": "{i} {s}",
		"ini":  "{i}Token=\\"{s}\\"",
		"make": `{I}_TOKEN := "{s}"`,
	}
}
"""

RULE = """package rules
func Acme() *config.Rule {
	r := config.Rule{Regex: regexp.MustCompile(`acme`), Keywords: []string{"acme"}}
	tps := utils.GenerateSampleSecrets("acme", "KEY") // a comment
	drawn := secrets.NewSecret(utils.Hex("32"))
	tps = append(tps, "one\\tline", `two `+"parts", utils.GenerateSampleSecret("a", drawn))
	fps := []string{"placeholder", unknown("x")}
	return utils.Validate(r, tps, fps)
}
func Other() *config.Rule {
	return utils.Validate(r, []string{"third"}, nil)
}
""".replace("KEY", KEY)

DETECTOR = """package acme
var (
	validPattern   = "KEY"
	invalidPattern = "KEY?"
	keyword        = "acme"
)
func TestPattern(t *testing.T) {
	tests := []struct {
		name  string
		want  []string
		input string
	}{
		{
			name:  "valid pattern",
			input: fmt.Sprintf("%s token = '%s'", keyword, validPattern),
			want:  []string{validPattern},
		},
		{
			name:  "valid pattern - key out of prefix range",
			input: fmt.Sprintf("%s far %s", keyword, validPattern),
			want:  []string{},
		},
		{name: "invalid pattern", input: fmt.Sprintf("%s = '%s'", keyword, invalidPattern),
			want: nil},
		{name: "invalid input that is made elsewhere", input: made(), want: nil},
	}
}
""".replace("KEY", KEY)


def _checkouts(folder: Path) -> Path:
    files = {
        "gitleaks/cmd/generate/config/utils/generate.go": GENERATE,
        "gitleaks/cmd/generate/config/rules/acme.go": RULE,
        "trufflehog/pkg/detectors/acme/v1/acme_test.go": DETECTOR,
        "trufflehog/pkg/detectors/acme/v1/acme_integration_test.go": DETECTOR,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_examples_of_gitleaks(tmp_path: Path) -> None:
    rows = list(read_gitleaks(_checkouts(tmp_path) / "gitleaks"))
    drawn = [row.text for row in rows if row.text.startswith("a_api_token")]
    assert [(row.text, row.label) for row in rows if row.text not in drawn] == [
        (f'acmeToken="{KEY}"', 1),
        (f'ACME_TOKEN := "{KEY}"', 1),
        ("one\tline", 1),
        ("two parts", 1),
        ("placeholder", 0),
        ("third", 1),
    ]
    (sample,) = drawn  # a_api_token = "…", 32 hexadecimal digits
    value = sample.partition('"')[2].removesuffix('"')
    assert len(value) == 32
    assert set(value) <= set("0123456789abcdef")
    again = list(read_gitleaks(tmp_path / "gitleaks"))
    assert again == rows


def test_examples_of_trufflehog(tmp_path: Path) -> None:
    rows = list(read_trufflehog(_checkouts(tmp_path) / "trufflehog"))
    assert rows == [
        SecretExample("trufflehog", "acme", f"acme token = '{KEY}'", 1, (KEY,)),
        SecretExample("trufflehog", "acme", f"acme = '{KEY}?'", 0),
    ]


def test_a_credential_must_be_found_at_its_place() -> None:
    text = f"token = {KEY}; id = 12"
    assert found(SecretExample("x", "x", text, 1, (KEY,)))
    assert not found(SecretExample("x", "x", text, 1, ("12",)))
    assert found(SecretExample("x", "x", text, 0))
    assert not found(SecretExample("x", "x", text, 0, (), frozenset({KEY})))  # a published key


def test_one_maker_is_in_one_half_in_both_projects() -> None:
    halves = {SecretExample("x", name, "", 1).half for name in ("New-Relic", "newrelic")}
    assert len(halves) == 1
    many = [SecretExample("x", f"maker{i}", "", 1).half for i in range(200)]
    assert 70 <= many.count("open") <= 130


def test_only_the_open_half_is_named(tmp_path: Path) -> None:
    names = [f"maker{i}" for i in range(40)]
    rules = tmp_path / "gitleaks" / "cmd" / "generate" / "config" / "rules"
    rules.mkdir(parents=True)
    for name in names:
        text = f'func X() {{ return utils.Validate(r, []string{{"missed {name}"}}, nil) }}'
        (rules / f"{name}.go").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(main, [str(tmp_path), "--ids"])
    assert result.exit_code == 0
    sealed = {name for name in names if SecretExample("x", name, "", 1).half == "sealed"}
    shown = {name for name in names if f"missed {name}'" in result.stdout}
    assert shown == set(names) - sealed
    assert f"0 of {len(sealed)}" in result.stdout
    assert "absent, left out" in result.stderr
