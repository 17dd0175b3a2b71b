package redact

import (
	"math"
	"strings"
	"time"
)

// numbers finds numbers of cards, accounts and people.
func (k Kinds) numbers(text []byte, add func(from, to int, name string)) {
	for at := 0; at < len(text); {
		c := text[at]
		if c < '0' || c > '9' {
			if k.People && c >= 'A' && c <= 'Z' && (at == 0 || !alnum[text[at-1]]) {
				if to := iban(text, at); to > at {
					add(at, to, "iban")
					at = to
					continue
				}
			}
			at++
			continue
		}
		if at > 0 && (alnum[text[at-1]] || text[at-1] == '.' || text[at-1] == '_') {
			for at < len(text) && (alnum[text[at]] || text[at] == '.') {
				at++
			}
			continue
		}
		digits, to := group(text, at)
		follows := to < len(text) && (alnum[text[to]] || text[to] == '_' || text[to] == '.' && to+1 < len(text) && alnum[text[to+1]])
		switch {
		case k.People && chinese(text, at):
			add(at, at+18, "identity-number")
			to = at + 18
		case follows:
		case k.Cards && card(digits):
			add(at, to, "card")
		case k.People && social(text[at:to]):
			add(at, to, "identity-number")
		}
		at = max(to, at+1)
	}
}

// group reads digits, which single spaces or hyphens may divide.
func group(text []byte, at int) (digits string, to int) {
	const most = 19
	var b strings.Builder
	for to = at; to < len(text) && b.Len() <= most; to++ {
		switch c := text[to]; {
		case c >= '0' && c <= '9':
			b.WriteByte(c)
		case (c == ' ' || c == '-') && to+1 < len(text) && text[to+1] >= '0' && text[to+1] <= '9':
		default:
			return b.String(), to
		}
	}
	return b.String(), to
}

// card says whether digits are the number of a card: of a network's range and length, and with Luhn's digit at the end.
func card(digits string) bool {
	n := len(digits)
	known := false
	switch {
	case n < 15 || n > 19:
	case digits[0] == '4':
		known = n == 16 || n == 19
	case digits >= "51" && digits < "56", digits >= "2221" && digits < "2721", strings.HasPrefix(digits, "6011"), strings.HasPrefix(digits, "65"), digits >= "3528" && digits < "3590":
		known = n == 16
	case strings.HasPrefix(digits, "34"), strings.HasPrefix(digits, "37"):
		known = n == 15
	case strings.HasPrefix(digits, "62"):
		known = n >= 16
	}
	return known && luhn(digits)
}

func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0 && strings.Trim(digits, "0") != ""
}

// social says whether a text is a social security number of the United States, with its hyphens and in the ranges that are given out.
func social(text []byte) bool {
	s := string(text)
	if len(s) != 11 || s[3] != '-' || s[6] != '-' || strings.Count(s, "-") != 2 {
		return false
	}
	return s[:3] != "000" && s[:3] != "666" && s[0] != '9' && s[4:6] != "00" && s[7:] != "0000"
}

// chinese says whether 18 characters are a resident's number: region, birthday, serial number and check digit (GB 11643).
func chinese(text []byte, at int) bool {
	if at+18 > len(text) || at+18 < len(text) && alnum[text[at+18]] {
		return false
	}
	s := string(text[at : at+18])
	sum := 0
	for i := range 17 {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		weight := 1
		for range 17 - i {
			weight = weight * 2 % 11
		}
		sum += int(s[i]-'0') * weight
	}
	if s[0] < '1' || s[0] > '8' || "10X98765432"[sum%11] != strings.ToUpper(s)[17] {
		return false
	}
	born, err := time.Parse("20060102", s[6:14])
	return err == nil && born.Year() >= 1900 && born.Year() < 2100
}

// iban returns where an account's number ends that begins at a place, or 0.
func iban(text []byte, at int) int {
	const least, most = 15, 34
	var s []byte
	to := at
	for ; to < len(text) && len(s) < most; to++ {
		c := text[to]
		if c == ' ' && len(s)%4 == 0 && to+1 < len(text) && upper[text[to+1]] {
			continue
		}
		if !upper[c] {
			break
		}
		s = append(s, c)
	}
	if len(s) < least || to < len(text) && alnum[text[to]] || s[1] < 'A' || s[2] > '9' || s[3] > '9' {
		return 0
	}
	rest := 0
	for _, c := range append(append([]byte{}, s[4:]...), s[:4]...) {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	if rest != 1 {
		return 0
	}
	return to
}

// email returns the address around an @, or an empty range.
func email(text []byte, at int) (from, to int) {
	local := set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-")
	from = at
	for from > 0 && at-from < 64 && local[text[from-1]] {
		from--
	}
	to = at + 1
	for to < len(text) && to-at < 254 && (alnum[text[to]] || text[to] == '.' || text[to] == '-') {
		to++
	}
	for to > at && (text[to-1] == '.' || text[to-1] == '-') {
		to--
	}
	domain := string(text[at+1 : max(to, at+1)])
	dot := strings.LastIndexByte(domain, '.')
	if from == at || dot <= 0 || len(domain)-dot-1 < 2 || strings.ContainsAny(domain[dot+1:], "0123456789-") {
		return 0, 0
	}
	return from, to
}

// guesses finds values that are assigned to names of secrets and look random.
func guesses(text []byte, add func(from, to int, name string)) {
	const least, most, bits = 12, 200, 3.2
	for _, word := range []string{"assword", "ASSWORD", "asswd", "PASSWD", "ecret", "ECRET", "oken", "OKEN", "pi_key", "PI_KEY", "pikey", "piKey", "pi-key", "ccess_key", "CCESS_KEY"} {
		each(text, word, func(at int) {
			i := at + len(word)
			for i < len(text) && (urlSafe[text[i]] || text[i] == '"' || text[i] == '\'') && i-at < 60 {
				i++
			}
			assigned := false
			for ; i < len(text) && i-at < 80 && strings.IndexByte(" \t:=>\"'", text[i]) >= 0; i++ {
				assigned = assigned || text[i] == '=' || text[i] == ':'
			}
			if !assigned {
				return
			}
			end := i
			for end < len(text) && text[end] > ' ' && strings.IndexByte("\"',;)}]<>", text[end]) < 0 {
				end++
			}
			value := text[i:end]
			if n := len(value); n >= least && n <= most && entropy(value) >= bits && mixed(value) && !placeholder(value) {
				add(i, end, "secret")
			}
		})
	}
}

// entropy is that of a text's bytes, in bits for each.
func entropy(text []byte) float64 {
	var count [256]int
	for _, c := range text {
		count[c]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(text))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// mixed says whether a text has letters and digits, and is no path and no call.
func mixed(text []byte) bool {
	letters, digits := false, false
	for _, c := range text {
		letters = letters || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digits = digits || c >= '0' && c <= '9'
		if c == '(' || c == '\\' || c == '[' {
			return false
		}
	}
	return letters && digits && strings.Count(string(text), "/") < 3 && strings.Count(string(text), ".") < 3
}
