package auth_test

import (
	"regexp"
	"strings"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/server/auth"
)

func TestATextHasItsPattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(auth.Pattern)
	seen := map[string]bool{}
	for range 100 {
		text := auth.NewText()
		if pattern.FindString("key = '"+text+"'") != text {
			t.Errorf("%s does not have the pattern", text)
		}
		id, hash, err := auth.ParseText(text)
		must(t, err)
		if !ident.Valid(ident.Key, id) || !strings.Contains(text, ident.Body(id)) {
			t.Errorf("the id %s is not that of %s", id, text)
		}
		if seen[string(hash[:])] {
			t.Error("two keys have the same secret")
		}
		seen[string(hash[:])] = true
	}
}

func TestEveryTypoIsNoticed(t *testing.T) {
	t.Parallel()
	text := auth.NewText()
	for i := range text {
		for _, c := range []byte("0az_ ") {
			if text[i] == c {
				continue
			}
			if _, _, err := auth.ParseText(text[:i] + string(c) + text[i+1:]); err == nil {
				t.Errorf("a %q in place %d was not noticed", c, i)
			}
		}
		if _, _, err := auth.ParseText(text[:i]); err == nil {
			t.Errorf("%d characters are taken for a key", i)
		}
	}
	for _, wrong := range []string{"", text + "0", " " + text, text + "\n", strings.ToUpper(text), "Bearer " + text} {
		if _, _, err := auth.ParseText(wrong); err == nil {
			t.Errorf("%q is taken for a key", wrong)
		}
	}
}

func TestTheOtherForm(t *testing.T) {
	t.Parallel()
	text := auth.NewText()
	other, err := auth.HexText(text)
	must(t, err)
	if !regexp.MustCompile(`^e2b_[0-9a-f]+$`).MatchString(other) {
		t.Errorf("E2B's clients refuse %s", other)
	}
	id, hash, err := auth.ParseText(text)
	must(t, err)
	if again, same, err := auth.ParseText(other); err != nil || again != id || same != hash {
		t.Errorf("it is the key %s, %v, rather than %s", again, err, id)
	}
	for _, wrong := range []string{"e2b_", other[:len(other)-2], other + "00", "e2b_" + strings.Repeat("z", len(other)-4), "e2b_" + strings.Repeat("00", 74)} {
		if _, _, err := auth.ParseText(wrong); err == nil {
			t.Errorf("%q is taken for a key", wrong)
		}
		if _, err := auth.HexText(wrong); err == nil {
			t.Errorf("%q has another form", wrong)
		}
	}
}

func FuzzParseText(f *testing.F) {
	f.Add("cove_06f1k3t3y4m0v8s2k5r7w9x1z4_0v8s2k5r7w9x1z406f1k3t3y4m0v8s2k_3t3y4m0")
	f.Add(auth.NewText())
	f.Add(strings.Repeat("_", 73))
	pattern := regexp.MustCompile("^" + auth.Pattern + "$")
	f.Fuzz(func(t *testing.T, text string) {
		id, _, err := auth.ParseText(text)
		if err != nil {
			if strings.Contains(err.Error(), text) && len(text) > 8 {
				t.Errorf("the error repeats the text: %v", err)
			}
			return
		}
		if strings.HasPrefix(text, "e2b_") {
			return // see TestTheOtherForm
		}
		if !pattern.MatchString(text) || !ident.Valid(ident.Key, id) || text[5:31] != ident.Body(id) {
			t.Errorf("%q is taken for the key %s", text, id)
		}
	})
}
