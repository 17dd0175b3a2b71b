package redact

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"strings"
)

// form is a thing that is known by a text in it. match returns where the thing is whose text stands at a place; an empty range: it is none.
type form struct {
	name, anchor string
	match        func(text []byte, at int) (from, to int)
}

const (
	privateKey = "private-key"
	keyBegin   = "-----BEGIN "
	keyName    = "PRIVATE KEY"
	keyEnd     = "-----END "
)

// Sets of bytes.
var (
	alnum   = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
	upper   = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
	hex     = set("0123456789abcdef")
	urlSafe = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
	base    = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=")
	inToken = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:@%~")
)

func set(chars string) (out [256]bool) {
	for i := range len(chars) {
		out[chars[i]] = true
	}
	return out
}

// after returns a match of an anchor followed by least to most bytes of a set, which nothing of the set precedes or follows.
func after(anchor string, of *[256]bool, least, most int) func([]byte, int) (int, int) {
	return func(text []byte, at int) (int, int) {
		if at > 0 && urlSafe[text[at-1]] {
			return 0, 0
		}
		end := run(text, at+len(anchor), of)
		if n := end - at - len(anchor); n < least || n > most || end < len(text) && urlSafe[text[end]] {
			return 0, 0
		}
		return at, end
	}
}

// run returns where the bytes of a set end.
func run(text []byte, at int, of *[256]bool) int {
	for at < len(text) && of[text[at]] {
		at++
	}
	return at
}

// checked is after for tokens that end with six digits of base 62: the CRC-32 of the rest.
func checked(anchor string) func([]byte, int) (int, int) {
	shape := after(anchor, &alnum, 36, 36)
	return func(text []byte, at int) (int, int) {
		from, to := shape(text, at)
		if to == 0 || base62(crc32.ChecksumIEEE(text[from+len(anchor):to-6])) != string(text[to-6:to]) {
			return 0, 0
		}
		return from, to
	}
}

// base62 writes a number in six digits.
func base62(n uint32) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := []byte("000000")
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits[n%62]
		n /= 62
	}
	return string(out)
}

// forms are all forms of secrets.
var forms = []form{
	{"aws-access-key", "AKIA", after("AKIA", &upper, 16, 16)},
	{"aws-access-key", "ASIA", after("ASIA", &upper, 16, 16)},
	{"github-token", "ghp_", checked("ghp_")},
	{"github-token", "gho_", checked("gho_")},
	{"github-token", "ghu_", checked("ghu_")},
	{"github-token", "ghs_", checked("ghs_")},
	{"github-token", "ghr_", checked("ghr_")},
	{"github-token", "github_pat_", after("github_pat_", &urlSafe, 82, 82)},
	{"npm-token", "npm_", checked("npm_")},
	{"gitlab-token", "glpat-", after("glpat-", &urlSafe, 20, 60)},
	{"pypi-token", "pypi-AgEIcHlwaS5vcmc", after("pypi-AgEIcHlwaS5vcmc", &urlSafe, 50, 400)},
	{"openai-key", "T3BlbkFJ", openAI},
	{"anthropic-key", "sk-ant-", after("sk-ant-", &urlSafe, 80, 200)},
	{"openrouter-key", "sk-or-v1-", after("sk-or-v1-", &hex, 64, 64)},
	{"huggingface-token", "hf_", after("hf_", &alnum, 34, 40)},
	{"google-api-key", "AIza", after("AIza", &urlSafe, 35, 35)},
	{"google-client-secret", "GOCSPX-", after("GOCSPX-", &urlSafe, 28, 28)},
	{"google-token", "ya29.", after("ya29.", &urlSafe, 60, 500)},
	{"slack-token", "xoxb-", after("xoxb-", &urlSafe, 20, 200)},
	{"slack-token", "xoxp-", after("xoxp-", &urlSafe, 20, 200)},
	{"slack-token", "xapp-", after("xapp-", &urlSafe, 40, 200)},
	{"slack-webhook", "hooks.slack.com/services/T", slackHook},
	{"stripe-key", "sk_live_", after("sk_live_", &alnum, 20, 120)},
	{"stripe-key", "rk_live_", after("rk_live_", &alnum, 20, 120)},
	{"sendgrid-key", "SG.", sendGrid},
	{"digitalocean-token", "dop_v1_", after("dop_v1_", &hex, 64, 64)},
	{"databricks-token", "dapi", after("dapi", &hex, 32, 32)},
	{"azure-storage-key", "AccountKey=", storageKey},
	{"telegram-token", ":AA", telegram},
	{"jwt", "eyJ", jwt},
	{privateKey, keyBegin, pem},
	{"password-in-address", "://", addressed},
	{"cove-key", "cove_", after("cove_", &urlSafe, 50, 90)},
}

// openAI matches a key of OpenAI's around the text that all of them have in the middle.
func openAI(text []byte, at int) (int, int) {
	from := at
	for from > 0 && urlSafe[text[from-1]] {
		from--
	}
	to := run(text, at, &urlSafe)
	if !bytes.HasPrefix(text[from:], []byte("sk-")) || at-from < 20 || to-at < 28 {
		return 0, 0
	}
	return from, to
}

func slackHook(text []byte, at int) (int, int) {
	path := at + len("hooks.slack.com/services/")
	to := path
	for to < len(text) && (alnum[text[to]] || text[to] == '/') {
		to++
	}
	if parts := strings.Split(string(text[path:to]), "/"); len(parts) != 3 || len(parts[2]) != 24 {
		return 0, 0
	}
	return path, to
}

func sendGrid(text []byte, at int) (int, int) {
	first := run(text, at+3, &urlSafe)
	if at > 0 && alnum[text[at-1]] || first-at-3 != 22 || first >= len(text) || text[first] != '.' {
		return 0, 0
	}
	if to := run(text, first+1, &urlSafe); to-first-1 == 43 {
		return at, to
	}
	return 0, 0
}

func storageKey(text []byte, at int) (int, int) {
	from := at + len("AccountKey=")
	if to := run(text, from, &base); to-from == 88 {
		return from, to
	}
	return 0, 0
}

// telegram matches NUMBER:AA and 33 characters more.
func telegram(text []byte, at int) (int, int) {
	from := at
	for from > 0 && text[from-1] >= '0' && text[from-1] <= '9' {
		from--
	}
	to := run(text, at+1, &urlSafe)
	if n := at - from; n < 8 || n > 10 || to-at-1 != 35 {
		return 0, 0
	}
	return from, to
}

// jwt matches three parts of which the first is a JSON object that names an algorithm.
func jwt(text []byte, at int) (int, int) {
	if at > 0 && urlSafe[text[at-1]] {
		return 0, 0
	}
	head := run(text, at, &urlSafe)
	if head-at < 16 || head+4 > len(text) || text[head] != '.' || !bytes.HasPrefix(text[head+1:], []byte("eyJ")) {
		return 0, 0
	}
	body := run(text, head+1, &urlSafe)
	if body >= len(text) || text[body] != '.' {
		return 0, 0
	}
	to := run(text, body+1, &urlSafe)
	if decoded, err := base64.RawURLEncoding.DecodeString(string(text[at:head])); err != nil || !bytes.Contains(decoded, []byte(`"alg"`)) || to-body < 20 {
		return 0, 0
	}
	return at, to
}

// pem matches a private key to its end. One that does not end here is Stream's to follow.
func pem(text []byte, at int) (int, int) {
	line := bytes.Index(text[at+len(keyBegin):], []byte("-----"))
	if line < 0 || line > 40 || !bytes.Contains(text[at:at+len(keyBegin)+line], []byte(keyName)) {
		return 0, 0
	}
	end := bytes.Index(text[at:min(len(text), at+longestKey)], []byte(keyEnd))
	if end < 0 {
		return 0, 0
	}
	last := bytes.Index(text[at+end+len(keyEnd):], []byte("-----"))
	if last < 0 || last > 40 {
		return 0, 0
	}
	return at, at + end + len(keyEnd) + last + 5
}

// addressed matches the password of scheme://user:password@host.
func addressed(text []byte, at int) (int, int) {
	const longest = 200
	colon, stop := -1, min(len(text), at+3+longest)
	for i := at + 3; i < stop; i++ {
		switch c := text[i]; {
		case c == '@':
			if colon < 0 || i-colon < 4 || placeholder(text[colon+1:i]) {
				return 0, 0
			}
			return colon + 1, i
		case c == ':' && colon < 0:
			colon = i
		case c <= ' ' || c == '/' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '?' || c == '#':
			return 0, 0
		}
	}
	return 0, 0
}

// placeholder says whether a value stands for one: ${PASSWORD}, <password>, ****, password.
func placeholder(value []byte) bool {
	low := strings.ToLower(string(value))
	if strings.ContainsAny(low, "<>{}$*%") || strings.Count(low, low[:1]) == len(low) {
		return true
	}
	for _, word := range []string{"password", "passwd", "secret", "example", "changeme", "redacted", "xxxx", "your", "token"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}
