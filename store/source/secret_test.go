package source

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretive is a catalog with a secret at every place that may hold one.
func secretive(t testing.TB) string {
	text := goodText(t)
	text = strings.Replace(text, "tier: 1, weight: 3}", "tier: 1, weight: 3}\n      - {name: third, value: \"plain:"+plainSecret+"\"}", 1)
	return text + "  - {name: app-3, key: " + keySecret + ", account: team-a, policy: default}\n"
}

// shown returns a secret that a problem of text shows.
func shown(text string) (secret, problem string) {
	tables, problems := Check([]byte(text))
	for _, p := range problems {
		line := p.Text("f")
		for _, secret := range []string{envSecret, fileSecret, plainSecret, keySecret} {
			if strings.Contains(line, secret) {
				return secret, line
			}
		}
	}
	if tables != nil && strings.Contains(Summary(tables), "sk-") {
		return "sk-", "the summary"
	}
	return "", ""
}

// However a catalog is damaged, no problem shows a secret.
func TestProblemsHideSecrets(t *testing.T) {
	text := secretive(t)
	if tables, problems := Check([]byte(text)); tables == nil {
		t.Fatal(problems)
	}
	const seed = 17
	rng := rand.New(rand.NewPCG(seed, seed))
	marks := []string{"\n", " ", ":", "- ", "{", "}", "[", "]", "\"", "'", "#", "&", "*", "!", "|", ",", "x", "\t", "---\n", "name: "}
	for round := range 600 {
		damaged := text
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(damaged))
			switch rng.IntN(3) {
			case 0: // take some out
				damaged = damaged[:at] + damaged[min(len(damaged), at+rng.IntN(40)):]
			case 1: // put something in
				damaged = damaged[:at] + marks[rng.IntN(len(marks))] + damaged[at:]
			case 2: // put a secret at a wrong place
				secrets := []string{envSecret, fileSecret, plainSecret, keySecret}
				colon := strings.Index(damaged[at:], ": ")
				if colon < 0 {
					continue
				}
				at += colon + 2
				end := at + strings.IndexAny(damaged[at:]+"\n", ",}\n")
				damaged = damaged[:at] + secrets[rng.IntN(len(secrets))] + damaged[min(end, len(damaged)):]
			}
		}
		if secret, problem := shown(damaged); secret != "" {
			t.Fatalf("round %d of seed %d: %s", round, seed, problem)
		}
	}
}

func TestSecretFile(t *testing.T) {
	folder := t.TempDir()
	long := filepath.Join(folder, "long")
	if err := os.WriteFile(long, make([]byte, secretFileMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newSecrets().resolve("file:" + long); err == nil || !strings.Contains(err.Error(), "is 16385 bytes long; allowed are 16384") {
		t.Errorf("long file: %v", err)
	}
	if _, err := newSecrets().resolve("vault:x"); err == nil {
		t.Error("an unknown reference is read")
	}
}

// The digest tells readings apart, also when texts are cut differently.
func TestSecretsDigest(t *testing.T) {
	digest := func(refs ...string) [32]byte {
		s := newSecrets()
		for _, ref := range refs {
			_, _ = s.resolve(ref) // the digest covers failures too
		}
		return s.digest()
	}
	if digest("plain:a", "plain:b") != digest("plain:a", "plain:b") {
		t.Error("equal readings differ")
	}
	if digest("plain:a") == digest("plain:b") || digest("plain:ab", "plain:c") == digest("plain:a", "plain:bc") || digest() == digest("plain:") {
		t.Error("different readings are equal")
	}
}

// FuzzCheck: whatever the bytes are, there is an answer, tables and errors
// exclude each other, and no problem shows a secret of the environment.
func FuzzCheck(f *testing.F) {
	f.Setenv("TEST_OPENAI_KEY", envSecret)
	f.Add([]byte(good))
	f.Add([]byte(small("m")))
	f.Add(Starter(someHash))
	for _, tt := range problemCases {
		f.Add([]byte(strings.Replace(good, tt.old, tt.new, 1)))
	}
	f.Add([]byte("a: &a [*a]\nhosts: *a\n"))
	f.Add([]byte("%YAML 1.1\n---\n!!set {? a}\n"))
	f.Add([]byte("? [a]\n: b\nhosts: |\n  x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tables, problems := Check(text)
		errors := 0
		last := 0
		for _, p := range problems {
			if !p.Warning {
				errors++
			}
			if p.Line < last && p.Line != 0 {
				t.Errorf("problems are not in order: %v", problems)
			}
			last = p.Line
			if strings.Contains(p.Message+p.Path, envSecret) {
				t.Errorf("a secret is in %v", p)
			}
			if p.Message == "" {
				t.Error("a problem without a message")
			}
		}
		if (tables == nil) != (errors > 0) {
			t.Errorf("tables are %v, errors %d", tables != nil, errors)
		}
	})
}
