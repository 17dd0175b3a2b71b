package redact

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"strings"
	"sync"
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
	anyHex  = set("0123456789abcdefABCDEF")
	urlSafe = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
	dotted  = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.=")
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
		if inWord(text, at) {
			return 0, 0
		}
		end := run(text, at+len(anchor), of)
		for of['.'] && end > at && text[end-1] == '.' {
			end-- // of the sentence
		}
		if n := end - at - len(anchor); n < least || n > most || end < len(text) && urlSafe[text[end]] {
			return 0, 0
		}
		return at, end
	}
}

// inWord says whether a place is within a word. What ends an escape sequence is no part of one.
func inWord(text []byte, at int) bool {
	return at > 0 && urlSafe[text[at-1]] && !escaped(text[:at])
}

// escaped says whether a text ends with an escape sequence: with a colour of a terminal, also one that is written out (\x1b[31m), or with one of those of JSON and Python (\n).
func escaped(text []byte) bool {
	const longest = 20
	last := len(text) - 1
	if last > 0 && strings.IndexByte("nrtbf", text[last]) >= 0 && text[last-1] == '\\' {
		return len(bytes.TrimRight(text[:last], `\`))%2 != last%2 // an even number of them stands for themselves
	}
	if last < 0 || text[last] < '@' { // a sequence ends with a letter or one of the signs among them
		return false
	}
	i := last - 1
	for i > 0 && last-i < longest && (text[i] >= '0' && text[i] <= '9' || text[i] == ';' || text[i] == ':') {
		i--
	}
	if i < 1 || text[i] != '[' {
		return false
	}
	for _, escape := range []string{"\x1b", `\x1b`, `\x1B`, `\u001b`, `\u001B`, `\033`, `\e`} {
		if bytes.HasSuffix(text[:i], []byte(escape)) {
			return true
		}
	}
	return false
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
var forms = append([]form{
	{"aws-access-key", "AKIA", after("AKIA", &upper, 16, 16)},
	{"aws-access-key", "ASIA", after("ASIA", &upper, 16, 16)},
	{"github-token", "ghp_", checked("ghp_")},
	{"github-token", "gho_", checked("gho_")},
	{"github-token", "ghu_", checked("ghu_")},
	{"github-token", "ghs_", checked("ghs_")},
	{"github-token", "ghr_", checked("ghr_")},
	{"github-token", "github_pat_", after("github_pat_", &urlSafe, 82, 82)},
	{"npm-token", "npm_", checked("npm_")},
	{"openai-key", "T3BlbkFJ", openAI},
	{"slack-webhook", "hooks.slack.com/services/T", slackHook},
	{"sendgrid-key", "SG.", sendGrid},
	{"azure-storage-key", "AccountKey=", storageKey},
	{"telegram-token", ":AA", telegram},
	{"jwt", "eyJ", jwt},
	{privateKey, keyBegin, pem},
	{"password-in-address", "://", addressed},
}, formsOfTokens()...)

// table has the forms by the first two bytes of their anchors, and says of three bytes whether an anchor may begin with them: if the masks of the three have a bit in common. Nearly every place
// of a text is passed by these, which stay in the fastest of a processor's caches.
type table struct {
	first, second, third [256]uint64
	group                [1 << 16]uint16 // by two bytes; 0: none
	forms                [][]form
}

var byAnchor = sync.OnceValue(func() *table {
	t := &table{forms: [][]form{nil}}
	for i, f := range forms {
		pair := uint16(f.anchor[0])<<8 | uint16(f.anchor[1])
		if t.group[pair] == 0 {
			t.group[pair] = uint16(len(t.forms)) //nolint:gosec // there are fewer forms than that
			t.forms = append(t.forms, nil)
		}
		t.forms[t.group[pair]] = append(t.forms[t.group[pair]], f)
		bit := uint64(1) << (i % 64)
		t.first[f.anchor[0]] |= bit
		t.second[f.anchor[1]] |= bit
		for third := range 256 {
			if len(f.anchor) == 2 || byte(third) == f.anchor[2] {
				t.third[third] |= bit
			}
		}
	}
	return t
})

// A part of a text in which all bytes are the same is passed at once, but for its end, where an anchor may begin.
const (
	block    = 4 << 10
	blockEnd = 16
)

// may says whether an anchor may begin with three bytes.
func (t *table) may(a, b, c byte) bool { return t.first[a]&t.second[b]&t.third[c] != 0 }

// find calls found with where each form is. No form is as short as an anchor of two bytes.
func (t *table) find(text []byte, found func(from, to int, name string)) {
	at := 0
	for ; at+10 <= len(text); at += 8 {
		if at%block == 0 && at+block < len(text) && bytes.Equal(text[at:at+block], text[at+1:at+block+1]) {
			at += block - blockEnd - 8
			continue
		}
		x := text[at : at+10 : at+10] // eight places, of which nearly always none is one
		if t.first[x[0]]&t.second[x[1]]&t.third[x[2]]|t.first[x[1]]&t.second[x[2]]&t.third[x[3]]|t.first[x[2]]&t.second[x[3]]&t.third[x[4]]|t.first[x[3]]&t.second[x[4]]&t.third[x[5]]|
			t.first[x[4]]&t.second[x[5]]&t.third[x[6]]|t.first[x[5]]&t.second[x[6]]&t.third[x[7]]|t.first[x[6]]&t.second[x[7]]&t.third[x[8]]|t.first[x[7]]&t.second[x[8]]&t.third[x[9]] == 0 {
			continue
		}
		for i := range 8 {
			if t.may(x[i], x[i+1], x[i+2]) {
				t.match(text, at+i, found)
			}
		}
	}
	for ; at+3 <= len(text); at++ {
		if t.may(text[at], text[at+1], text[at+2]) {
			t.match(text, at, found)
		}
	}
}

// match calls found with where each form is whose anchor is at a place.
func (t *table) match(text []byte, at int, found func(from, to int, name string)) {
	for _, f := range t.forms[t.group[uint16(text[at])<<8|uint16(text[at+1])]] {
		if len(text)-at < len(f.anchor) || string(text[at:at+len(f.anchor)]) != f.anchor {
			continue
		}
		if from, to := f.match(text, at); to > from {
			found(from, to, f.name)
		}
	}
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
	if inWord(text, at) && text[at-1] != '_' && text[at-1] != '-' || first-at-3 != 22 || first >= len(text) || text[first] != '.' {
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
	if inWord(text, at) {
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
