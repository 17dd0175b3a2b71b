package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cove/internal/code/redact"
)

// keys makes one key of each of many services, by the name that is said of it, with what has to stand before it. They are made here, so that no file of this repository has the form of one.
func keys() map[string][2]string {
	r := rand.New(rand.NewPCG(5, 6))
	const hex = "0123456789abcdef"
	key := func(before, begin, set string, n int) [2]string {
		return [2]string{before, strings.ReplaceAll(begin, "|", "") + random(r, set, n)}
	}
	return map[string][2]string{
		"groq-key":          key("", "gs|k_", alnum, 52),
		"xai-key":           key("", "xa|i-", alnum, 80),
		"replicate-token":   key("", "r8|_", alnum, 37),
		"perplexity-key":    key("", "ppl|x-", alnum, 48),
		"vault-token":       key("", "hv|s.", alnum, 95),
		"doppler-token":     key("", "dp|.pt.", alnum, 43),
		"linear-key":        key("", "lin|_api_", alnum, 40),
		"notion-token":      key("", "nt|n_", digits, 46),
		"newrelic-key":      key("", "NR|AK-", uppers, 27),
		"twilio-key":        key("", "S|K", hex, 32),
		"square-token":      key("", "sq0|atp-", alnum, 22),
		"heroku-key":        key("", "HR|KU-AA", alnum, 58),
		"planetscale-token": key("", "pscale|_tkn_", alnum, 43),
		"shopify-token":     key("", "shp|at_", hex, 32),
		"grafana-token":     key("", "gl|c_", alnum, 64),
		"pulumi-token":      key("", "pu|l-", hex, 40),
		"postman-key":       key("", "PM|AK-", hex, 24),
		"rubygems-key":      key("", "ruby|gems_", hex, 48),
		"sentry-token":      key("", "sntr|yu_", hex, 64),
		"mailgun-key":       key("", "ke|y-", hex, 32),
		"nvidia-key":        key("", "nv|api-", alnum, 64),
		"e2b-key":           key("", "e2|b_", hex, 40),
		"tailscale-key":     key("", "tskey|-auth-", alnum, 40),
		"discord-key":       key("DISCORD_TOKEN=", "", alnum, 59),
		"datadog-key":       key("datadog_api_key: ", "", hex, 32),
		"cohere-key":        key(`os.environ["COHERE_API_KEY"] = "`, "", alnum, 40),
		"aws-secret-key":    key("AWS_SECRET_ACCESS_KEY=", "", alnum, 40),
		"authorization":     key("Authorization: Basic ", "", alnum, 24),
	}
}

// TestKeysOfServices takes one key of each service out of each surrounding.
func TestKeysOfServices(t *testing.T) {
	t.Parallel()
	kinds := redact.Kinds{Secrets: true}
	for name, k := range keys() {
		before, secret := k[0], k[1]
		if name == "postman-key" {
			secret += "-" + strings.Repeat("0a", 17)
		}
		for _, around := range []string{"%s", "is %s\n", `{"x": "%s"}`, "(%s)", "a;%s;b", "%s.", "\x1b[31m%s\x1b[0m", `"\x1b[1;32m%s\x1b[0m"`, `"\u001b[31m%s"`, `"first\n%s\nlast"`, `'first\t%s'`} {
			text := fmt.Sprintf(around, before+secret)
			got, counts := kinds.String(text)
			if counts[name] != 1 || strings.Contains(got, secret[len(secret)-12:]) {
				t.Errorf("%s: %q became %q, %v", name, text, got, counts)
			}
		}
	}
}

// TestNoKeysOfServices leaves alone what has the beginning of a key, or the name of a service.
func TestNoKeysOfServices(t *testing.T) {
	t.Parallel()
	kinds := redact.Kinds{Secrets: true}
	for _, text := range []string{
		"Authorization: Bearer YOUR_API_KEY", "Authorization: Bearer <token>", "authorization = Basic ...", "the word Authorization: none", "discord is a service: abcdefghijklmnop1234567890", "heroku_url = postgres",
		"cloudflare_token = os.environ['CLOUDFLARE_TOKEN']", "MAILGUN_API_KEY=your-key-goes-here-123456", "key-value pairs", "SKILL", "mask_r8_x", `C:\\new_hf_abcdefghijklmnopqrstuvwxyzabcdefgh`, "sk-learn-0.24", "task-0123456789abcdef0123456789abcdef",
		"datadog key: " + strings.Repeat("a", 40), "hvs.short", "twilio says: key = 12345678901234567890",
	} {
		if got, counts := kinds.String(text); counts != nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestCutAtColours cuts coloured keys at every place.
func TestCutAtColours(t *testing.T) {
	t.Parallel()
	secret := keys()["groq-key"][1]
	for _, text := range []string{"log \x1b[1;31m" + secret + "\x1b[0m end\n", `{"a": "\u001b[31m` + secret + `\n"}` + "\n"} {
		want, _ := redact.Kinds{Secrets: true}.String(text)
		if strings.Contains(want, secret) {
			t.Fatalf("%q", want)
		}
		for at := range text {
			s := redact.Stream{Kinds: redact.Kinds{Secrets: true}}
			got := string(s.Write([]byte(text[:at]))) + string(s.Write([]byte(text[at:]))) + string(s.Flush())
			if got != want {
				t.Errorf("cut after %q: %q, want %q", text[:at], got, want)
			}
		}
	}
}

// TestOwnValues takes the credentials of a session out, also where nothing else is, and where pieces cut them.
func TestOwnValues(t *testing.T) {
	t.Parallel()
	const value, word = "Bearer opaque value-0815", "value-0815"
	kinds := redact.Kinds{Own: redact.NewValues(value, "short", "aaaaaaab")}
	if kinds.None() {
		t.Error("there is nothing to take out")
	}
	if redact.NewValues("short", "") != nil || !(redact.Kinds{Own: redact.NewValues()}).None() {
		t.Error("no values are values")
	}
	text := "Authorization: " + value + "; " + word + ", short, aaaaaaaab\n"
	const want = "Authorization: [redacted credential]; [redacted credential], short, a[redacted credential]\n"
	if got, counts := kinds.String(text); got != want || counts["credential"] != 3 {
		t.Errorf("%q, %v", got, counts)
	}
	for size := 1; size < len(text); size++ {
		s := redact.Stream{Kinds: kinds}
		var got bytes.Buffer
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), size)
			got.Write(s.Write(rest[:n]))
			rest = rest[n:]
		}
		got.Write(s.Flush())
		if got.String() != want {
			t.Errorf("in pieces of %d bytes: %q", size, got.String())
		}
	}
	in := map[string]any{"a": []any{1.5, word, nil}, "k " + word: true, "raw": json.RawMessage(`{"x":"` + word + `"}`)}
	out, counts := kinds.Any(in)
	encoded, err := json.Marshal(out)
	if err != nil || string(encoded) != `{"a":[1.5,"[redacted credential]",null],"k [redacted credential]":true,"raw":{"x":"[redacted credential]"}}` || counts["credential"] != 3 || in["a"].([]any)[1] != word {
		t.Errorf("%v, %v, %v", out, counts, in)
	}
}
