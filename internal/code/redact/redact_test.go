package redact_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"cove/internal/code/redact"
)

// random is text of a set, the same in every run.
func random(r *rand.Rand, set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[r.IntN(len(set))]
	}
	return string(b)
}

const (
	letters = "abcdefghijklmnopqrstuvwxyz"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
	alnum   = letters + uppers + digits
)

// summed is a token with GitHub's checksum. Tokens are made here, so that no file of this repository has the form of one.
func summed(prefix, rest string) string {
	const set = digits + uppers + letters
	n := crc32.ChecksumIEEE([]byte(rest))
	sum := []byte("000000")
	for i := len(sum) - 1; i >= 0; i-- {
		sum[i] = set[n%62]
		n /= 62
	}
	return prefix + rest + string(sum)
}

// secrets makes one of each form, by the name that is said of it.
func secrets() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	key := func(prefix, set string, n int) string { return prefix + random(r, set, n) }
	return map[string]string{
		"aws-access-key":       key("AK"+"IA", uppers, 16),
		"github-token":         summed("gh"+"p_", random(r, alnum, 30)),
		"npm-token":            summed("np"+"m_", random(r, alnum, 30)),
		"gitlab-token":         key("gl"+"pat-", alnum, 20),
		"pypi-token":           key("py"+"pi-AgEIcHlwaS5vcmc", alnum, 80),
		"openai-key":           key("sk"+"-proj-", alnum, 40) + "T3Blbk" + "FJ" + random(r, alnum, 40),
		"anthropic-key":        key("sk"+"-ant-api03-", alnum, 90),
		"huggingface-token":    key("h"+"f_", letters, 34),
		"google-api-key":       key("AI"+"za", alnum, 35),
		"slack-token":          key("xo"+"xb-", digits, 12) + "-" + random(r, alnum, 24),
		"stripe-key":           key("sk"+"_live_", alnum, 24),
		"sendgrid-key":         key("S"+"G.", alnum, 22) + "." + random(r, alnum, 43),
		"digitalocean-token":   key("do"+"p_v1_", "0123456789abcdef", 64),
		"azure-storage-key":    "AccountKey=" + random(r, alnum, 86) + "==",
		"telegram-token":       random(r, digits, 9) + ":AA" + random(r, alnum, 33),
		"jwt":                  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJ" + random(r, alnum, 30) + "." + random(r, alnum, 43),
		"private-key":          "-----BEGIN RSA PRIVATE " + "KEY-----\n" + random(r, alnum, 64) + "\n" + random(r, alnum, 64) + "\n-----END RSA PRIVATE KEY-----",
		"password-in-address":  "postgres://app:" + random(r, alnum, 12) + "@db.example.com/x",
		"google-client-secret": key("GO"+"CSPX-", alnum, 28),
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	kinds := redact.Kinds{Secrets: true}
	for name, secret := range secrets() {
		for _, around := range []string{"%s", "key: %s\n", `{"key": "%s"}`, "(%s)", "a=%s;b", "https://x.example/?k=%s&z=1"} {
			if name == "private-key" && strings.HasPrefix(around, "https") {
				continue
			}
			text := fmt.Sprintf(around, secret)
			got, counts := kinds.String(text)
			core := secret[len(secret)-min(len(secret), 20):]
			if name == "password-in-address" {
				core = secret[len("postgres://app:"):strings.IndexByte(secret, '@')]
			}
			if counts[name] != 1 || strings.Contains(got, core) || !strings.Contains(got, "[redacted "+name+"]") {
				t.Errorf("%s: %q became %q, %v", name, text, got, counts)
			}
		}
	}
}

// TestNoSecrets leaves alone what only looks a little like one.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	all := redact.Kinds{Secrets: true, Guesses: true, Cards: true, People: true, Emails: true}
	for _, text := range []string{
		"the token of the sentence is here: abc", "password: ********", "password = os.environ['DB_PASSWORD']", "password=${DB_PASSWORD}", "postgres://user:password@localhost/db", "http://example.com:8080/a@b",
		"gh" + "p_000000000000000000000000000000000000", "secret_key = get_secret('a')", "api_key: your-api-key-here-12345", "mean 4111.111 std 0.1234567890123456", "1234567890123456", "3.141592653589793",
		"2024-01-01 10:20:30", "tokens: 1234567890123", "2026112612345678", "commit 0123456789abcdef0123456789abcdef01234567", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "the eyJ of it", "AKIAshort",
		"a @ b", "@decorator", "x@y", "df @ other.T", "token_count=12 and max_tokens=4096", "id 123-45-678", "phone 555-12-34567", "https://github.com/user/repo", "sk-learn", "sk-image-0.24",
	} {
		if got, counts := all.String(text); counts != nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNumbersOfPeople(t *testing.T) {
	t.Parallel()
	all := redact.Kinds{Guesses: true, Cards: true, People: true, Emails: true}
	for text, want := range map[string]string{
		"card 4111 1111 1111 1111 of": "card [redacted card] of", "5500-0000-0000-0004": "[redacted card]", "378282246310005": "[redacted card]", "4111111111111112": "4111111111111112",
		"ssn 078-05-1120.": "ssn [redacted identity-number].", "000-12-3456": "000-12-3456", "id 11010519491231002X,": "id [redacted identity-number],", "110105194912310021": "110105194912310021",
		"IBAN GB82 WEST 1234 5698 7654 32 ok": "IBAN [redacted iban] ok", "DE89370400440532013000": "[redacted iban]", "DE89370400440532013001": "DE89370400440532013001",
		"write to jane.doe@example.com.": "write to [redacted email].", `password = "hV7q` + `Zt29xKpL"`: `password = "[redacted secret]"`, "API_KEY=a8F3kL09" + "qwPz71mN": "API_KEY=[redacted secret]",
	} {
		if got, _ := all.String(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}

// TestFindsAfterLargeBlocks has keys after much of one byte, with which a form may begin, too, at each place of a word of the processor's.
func TestFindsAfterLargeBlocks(t *testing.T) {
	t.Parallel()
	for _, fill := range []string{"\x00", " ", "-", ":"} {
		for before := 8190; before < 8210; before++ {
			for name, secret := range secrets() {
				text := strings.Repeat(fill, before) + "\n" + secret + "\n" + strings.Repeat(fill, before)
				if name == "private-key" {
					text = strings.Repeat(fill, before) + secret + "\n" + strings.Repeat(fill, before)
				}
				if _, counts := (redact.Kinds{Secrets: true}).String(text); counts[name] != 1 {
					t.Fatalf("%s after %d of %q: %v", name, before, fill, counts)
				}
			}
		}
	}
}

// TestStream cuts a text with secrets at every place, into pieces of many sizes.
func TestStream(t *testing.T) {
	t.Parallel()
	all := secrets()
	text := "begin\n"
	for _, name := range []string{"aws-access-key", "private-key", "github-token", "jwt", "openai-key"} {
		text += "value: " + all[name] + "\nplain words, and more of them\n"
	}
	want, _ := redact.Kinds{Secrets: true}.String(text)
	for size := 5000; size < 12000; size += 7 {
		long := strings.Repeat("0123 ", 1000) + text
		s := redact.Stream{Kinds: redact.Kinds{Secrets: true}}
		var got bytes.Buffer
		for rest := []byte(long); len(rest) > 0; {
			n := min(len(rest), size)
			got.Write(s.Write(rest[:n]))
			rest = rest[n:]
		}
		got.Write(s.Flush())
		if out := strings.TrimPrefix(got.String(), strings.Repeat("0123 ", 1000)); out != want || s.Counts["private-key"] != 1 {
			t.Fatalf("in pieces of %d bytes: %q, %v", size, out, s.Counts)
		}
	}
	s := redact.Stream{Kinds: redact.Kinds{Secrets: true}}
	if got := s.Write([]byte("Name? ")); string(got) != "Name? " {
		t.Errorf("a prompt came as %q", got)
	}
	if got := s.Write([]byte("Loading...")); string(got) != "Loading..." {
		t.Errorf("progress came as %q", got)
	}
	first := s.Write([]byte("key " + all["aws-access-key"][:9]))
	second := s.Write([]byte(all["aws-access-key"][9:] + "\n"))
	if got := string(first) + string(second); got != "key [redacted aws-access-key]\n" {
		t.Errorf("in two small pieces: %q", got)
	}
	// Something else is emitted between the lines of a key, which flushes, and a key comes byte by byte.
	for what, flush := range map[string]bool{"with flushes": true, "byte by byte": false} {
		s := redact.Stream{Kinds: redact.Kinds{Secrets: true}}
		var got bytes.Buffer
		pieces := strings.SplitAfter(all["private-key"]+"\nafter\n", "\n")
		if !flush {
			pieces = strings.Split(strings.ReplaceAll(all["private-key"], "\n", strings.Repeat("\nAB/+0", 300)+"\n")+"\nafter\n", "")
		}
		for _, piece := range pieces {
			got.Write(s.Write([]byte(piece)))
			if flush {
				got.Write(s.Flush())
			}
		}
		got.Write(s.Flush())
		if got.String() != "[redacted private-key]\nafter\n" {
			t.Errorf("%s: %.200q", what, got.String())
		}
	}
	open := redact.Stream{Kinds: redact.Kinds{Secrets: true}}
	got := string(open.Write([]byte("x -----BEGIN PRIVATE "+"KEY-----\nMIIE"))) + string(open.Write([]byte("vQ\nabc\n"))) + string(open.Flush())
	if got != "x [redacted private-key]" {
		t.Errorf("a key without an end: %q", got)
	}
}

// TestStreamMasks cuts a text with secrets into pieces, some of which are flushed: what is no secret keeps its place.
func TestStreamMasks(t *testing.T) {
	t.Parallel()
	all := secrets()
	var text, want bytes.Buffer
	for name, secret := range all {
		text.WriteString("value: " + secret + "\nplain words\n")
		if strings.HasPrefix(name, "password-in") || strings.HasPrefix(name, "slack-webhook") || strings.HasPrefix(name, "azure") {
			want.WriteString("value: " + secret + "\nplain words\n") // only a part is taken out; its length is compared
			continue
		}
		want.WriteString("value: " + strings.Repeat("?", len(secret)) + "\nplain words\n")
	}
	for size := 1; size < text.Len(); size += 13 {
		s := redact.Stream{Kinds: redact.Kinds{Secrets: true}, Masks: true}
		var got []byte
		for rest := text.Bytes(); len(rest) > 0; {
			n := min(len(rest), size)
			got = append(got, s.Write(rest[:n])...)
			if rest = rest[n:]; len(got)+s.Held() != text.Len()-len(rest) {
				t.Fatalf("%d bytes came and %d are held of %d", len(got), s.Held(), text.Len()-len(rest))
			}
		}
		got = append(got, s.Flush()...)
		if len(got) != text.Len() {
			t.Fatalf("in pieces of %d bytes: %d bytes of %d", size, len(got), text.Len())
		}
		for name, secret := range all {
			if name != "password-in-address" && bytes.Contains(got, []byte(secret)) {
				t.Errorf("in pieces of %d bytes: %s is there", size, name)
			}
		}
		for i, c := range want.Bytes() {
			if at := bytes.LastIndexByte(want.Bytes()[:i], '\n'); c != '?' && bytes.HasPrefix(want.Bytes()[at+1:], []byte("plain")) && got[i] != c {
				t.Fatalf("in pieces of %d bytes: byte %d became %q: %q", size, i, got[i], got[max(0, i-40):i+1])
			}
		}
	}
	s := redact.Stream{Kinds: redact.Kinds{Secrets: true}, Masks: true}
	var got string
	for _, piece := range strings.SplitAfter("a\n"+all["private-key"]+"\nafter\n", "\n") {
		got += string(s.Write([]byte(piece))) + string(s.Flush())
	}
	if !strings.HasPrefix(got, "a\n[redacted private-key]*") || !strings.HasSuffix(got, "*\nafter\n") || strings.Count(got, "\n") != strings.Count(all["private-key"], "\n")+3 || strings.Contains(got, "=") {
		t.Errorf("with flushes: %q", got)
	}
}

func FuzzStream(f *testing.F) {
	f.Add("key AKIA0123456789ABCDEF and -----BEGIN PRIVATE "+"KEY-----\nx", 7)
	f.Fuzz(func(t *testing.T, text string, size int) {
		all := redact.Kinds{Secrets: true, Guesses: true, Cards: true, People: true, Emails: true}
		_, _ = all.String(text)
		s := redact.Stream{Kinds: all}
		size = max(1, size%5000)
		n := 0
		for rest := []byte(text); len(rest) > 0; {
			k := min(len(rest), size)
			n += len(s.Write(rest[:k]))
			rest = rest[k:]
		}
		n += len(s.Flush())
		if len(s.Counts) == 0 && n != len(text) {
			t.Errorf("%d of %d bytes came out, and nothing was taken out", n, len(text))
		}
		masks, m := redact.Stream{Kinds: all, Masks: true}, 0
		for rest := []byte(text); len(rest) > 0; rest = rest[min(len(rest), size):] {
			m += len(masks.Write(rest[:min(len(rest), size)]))
		}
		if m += len(masks.Flush()); m != len(text) {
			t.Errorf("%d of %d bytes came out with masks", m, len(text))
		}
	})
}

func BenchmarkText(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	var text bytes.Buffer
	for text.Len() < 1<<20 {
		fmt.Fprintf(&text, "%d, %s, %.3f, 2026-01-%02d, https://example.com/%s\n", r.IntN(1e6), random(r, letters, 12), r.Float64(), r.IntN(28)+1, random(r, alnum, 8))
	}
	for name, kinds := range map[string]redact.Kinds{"secrets": {Secrets: true}, "all": {Secrets: true, Guesses: true, Cards: true, People: true, Emails: true}} {
		b.Run(name+"/nothing", func(b *testing.B) {
			zeros := make([]byte, 1<<20)
			b.SetBytes(1 << 20)
			for b.Loop() {
				kinds.Text(zeros)
			}
		})
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				kinds.Text(text.Bytes())
			}
		})
	}
}
