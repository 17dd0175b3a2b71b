package toolserver

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzResult(f *testing.F) {
	for _, text := range []string{`{"content":[{"type":"text","text":"a"}]}`, `{"content":[],"structuredContent":{"a":1}}`, `{"isError":true}`, `{"content":[{"type":"resource","resource":null}]}`, `[`, `null`, `{"content":[1]}`, `{"content":[{"type":"text"},`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := result(json.RawMessage(text))
		if r.Err == "" && !json.Valid(r.Value) {
			t.Errorf("%q gives %q", text, r.Value)
		}
	})
}

func FuzzList(f *testing.F) {
	for _, text := range []string{`[{"name":"a","inputSchema":{"type":"object"}}]`, `[{"name":"a"},{"name":"a"}]`, `[null]`, `{}`, `[{"name":"` + strings.Repeat("é/", 100) + `"}]`} {
		f.Add(text)
	}
	s := &server{Config: Config{Name: "s"}}
	f.Fuzz(func(t *testing.T, text string) {
		l := &list{named: map[string]string{}}
		_ = elements(json.RawMessage(text), mostTools, func(d *json.Decoder) error {
			var one listed
			err := d.Decode(&one)
			if err == nil {
				s.add(l, one)
			}
			return err
		})
		for _, one := range l.tools {
			if !strings.HasPrefix(one.Name, "s.") || len(one.Name) > 128 || len(one.Description) > longestDescription {
				t.Errorf("%+v", one)
			}
		}
	})
}

func TestScrubber(t *testing.T) {
	t.Parallel()
	s := newScrubber([]string{"short", `a/b"c<d>é`, "a/b\"c<d>é and more", "Bearer"})
	for text, want := range map[string]string{
		"short": "short", `x a/b"c<d>é y`: "x [secret] y", `"a/b\"c\u003cd\u003eé"`: `"[secret]"`, "a/b\"c<d>é and more": "[secret]", "a%2Fb%22c%3Cd%3E%C3%A9": "[secret]", "YS9iImM8ZD7DqQ==": "[secret]",
	} {
		if got := s.text(text); got != want {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	if got := (scrubber{}).text("a"); got != "a" {
		t.Error(got)
	}
}
