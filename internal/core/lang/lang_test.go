package lang

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLanguageOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		setting string
		env     map[string]string
		want    Language
	}{
		{"", nil, English},
		{"", map[string]string{"LANG": "zh_CN.UTF-8"}, Chinese},
		{"", map[string]string{"LANG": "zh_TW.UTF-8"}, Chinese},
		{"", map[string]string{"LANG": "zh"}, Chinese},
		{"", map[string]string{"LANG": "zh_CN.utf8@pinyin"}, Chinese},
		{"", map[string]string{"LANG": "zh_CN.GBK"}, English}, // whose terminals show no UTF-8
		{"", map[string]string{"LANG": "zh_TW.Big5", "LANGUAGE": "zh_TW"}, English},
		{"zh", map[string]string{"LANG": "zh_CN.GB18030"}, Chinese},
		{"", map[string]string{"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, Chinese},
		{"", map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "de_DE.UTF-8"}, English},
		{"", map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, English},
		{"", map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": "POSIX"}, English},
		{"", map[string]string{"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, Chinese},
		{"", map[string]string{"LANG": "zh_CN.UTF-8", "LANGUAGE": "de:en:zh"}, English},
		{"", map[string]string{"LANG": "zh_CN.UTF-8", "LANGUAGE": "de"}, Chinese},
		{"", map[string]string{"LANG": "C.UTF-8", "LANGUAGE": "zh_CN"}, English},
		{"", map[string]string{"LANGUAGE": "zh_CN"}, English},
		{"", map[string]string{"LANG": "zhx_XX"}, English},
		{"zh", map[string]string{"LC_ALL": "C"}, Chinese},
		{"en", map[string]string{"LANG": "zh_CN.UTF-8"}, English},
		{"fr", map[string]string{"LANG": "zh_CN.UTF-8"}, Chinese}, // which the settings refuse
	} {
		if got := Of(test.setting, func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("setting %q, environment %v: %s", test.setting, test.env, got)
		}
	}
}

// of is a catalogue with these texts.
func of(pairs ...string) *Catalogue {
	var entries []Entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, Entry{ID: pairs[i], Text: pairs[i+1]})
	}
	m := newMatcher(entries)
	return &Catalogue{help: func() map[string]string { return nil }, messages: func() map[string]string { return byID(entries) }, matcher: func() *matcher { return m }}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	c := of("there is no session %s", "没有会话 %s", "cannot read %s", "无法读取 %s", "no such file or directory", "没有这个文件或目录", "the key has expired", "密钥已过期",
		"%s in %q has %d lines", "%[2]s 里的 %[1]s 有 %[3]d 行", "%d files", "%d 个文件", "%s are too large", "%s 太大", "50%% of it", "其中的 50%%", "%s is no name", "%s 不是名称",
		"%s is no name of a model", "%s 不是模型的名称")
	for text, want := range map[string]string{
		"there is no session lab":                                       "没有会话 lab",
		"the key has expired":                                           "密钥已过期",
		"  the key has expired\n":                                       "  密钥已过期\n",
		"cannot read a.csv: open a.csv: no such file or directory":      "无法读取 a.csv: open a.csv：没有这个文件或目录",
		"read a.csv: no such file or directory":                         "read a.csv：没有这个文件或目录",
		"the server says: the key has expired; there is no session lab": "the server says：密钥已过期；没有会话 lab",
		"table in \"a: b\" has 3 lines":                                 "\"a: b\" 里的 table 有 3 行",
		"table in \"a has 3 lines":                                      "table in \"a has 3 lines",
		"table in \"a\" has many lines":                                 "table in \"a\" has many lines",
		"12 files are too large":                                        "12 个文件 太大",
		"50% of it":                                                     "其中的 50%",
		"x is no name of a model":                                       "x 不是模型的名称",
		"x is no name":                                                  "x 不是名称",
		"something else":                                                "something else",
		"memory the key has expired":                                    "memory 密钥已过期",
		"folders.data and folders.out the key has expired":              "folders.data and folders.out 密钥已过期",
		"the engine the key has expired":                                "the engine 密钥已过期",
		"a word too many: and then the key has expired":                 "a word too many: and then the key has expired",
		"": "",
		"there is no session lab\nthe key has expired":                       "没有会话 lab\n密钥已过期",
		strings.Repeat("x", longest) + ": the key has expired":               strings.Repeat("x", longest) + ": the key has expired",
		"first: second: third: the key has expired":                          "first: second: third：密钥已过期",
		"the key has expired. the key has expired, first: there is no thing": "密钥已过期。密钥已过期，first: there is no thing",
	} {
		if got := c.Text(text); got != want {
			t.Errorf("%.80q became\n%.120q, not\n%.120q", text, got, want)
		}
	}
	if got := (*Catalogue)(nil).Text("the key has expired"); got != "the key has expired" {
		t.Errorf("English became %q", got)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	c := of("%s has %d lines", "%[2]d 行在 %[1]s 里")
	if got := fmt.Sprintf(c.Format("\n  %s has %d lines\n"), "a", 3); got != "\n  3 行在 a 里\n" {
		t.Errorf("%q", got)
	}
	var b bytes.Buffer
	if _, err := Fprintf(&b, "%s has %d lines", "a", 3); err != nil || b.String() != "a has 3 lines" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if f := ParseFormat("%-8s is 100%% of %*d, %[1]q, %!"); len(f.Verbs) != 3 || f.Verbs[1].Arg != 2 || !f.Verbs[1].Star || f.Verbs[2].Arg != 0 || f.Literals[1] != " is 100% of " || f.Literals[3] != ", %!" {
		t.Errorf("%+v", f)
	}
}

func TestPOFilesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hello", `msgstr "x"`, "msgid x", "\"x\"", "msgid \"a\"\n\n\"b\""} {
		if got, err := ParsePO(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
	got, err := ParsePO("# c\nmsgid \"\"\nmsgstr \"\"\n\"Language: zh\\n\"\n\nmsgid \"\"\n\"a\\n\"\n\"b\"\nmsgstr \"c\"\n")
	if err != nil || len(got) != 1 || got[0] != (Entry{ID: "a\nb", Text: "c", Line: 6}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// sample is what a verb may show that no text of a catalogue is.
func sample(v Verb, n int) string {
	switch v.Kind {
	case 'd':
		return fmt.Sprint(4100 + n)
	case 'f', 'g':
		return fmt.Sprintf("%d.5", 4100+n)
	case 'q':
		return fmt.Sprintf("%q", fmt.Sprintf("qq%d", n))
	}
	return fmt.Sprintf("zz%d", n)
}

// TestEveryFormatIsRecognized wants what is made with a format to come back in its translation, whatever other formats there are.
func TestEveryFormatIsRecognized(t *testing.T) {
	t.Parallel()
	c := Open(Chinese)
	for _, name := range Names(Chinese) {
		if name == helpFile || name == terminalFile {
			continue
		}
		for _, e := range read(Chinese, name) {
			from, to := ParseFormat(e.ID), ParseFormat(e.Text)
			if len(from.Verbs) > 0 && from.literal() < least {
				continue
			}
			args := make([]string, 16)
			for i, v := range from.Verbs {
				args[v.Arg] = sample(v, i)
			}
			if got, want := c.Text(from.fill(args)), to.fill(args); got != want {
				t.Errorf("%s: %q became\n%q, not\n%q", name, from.fill(args), got, want)
			}
		}
	}
}

// TestTextsOfAnybody wants no message to take long or to be lost, and what is captured to come back.
func TestTextsOfAnybody(t *testing.T) {
	t.Parallel()
	c := Open(Chinese)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got := c.Text("there is no session " + text)
		if !strings.Contains(got, strings.TrimSpace(text)) && c.Text(text) == text {
			t.Errorf("%q is not in %q", text, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	c := Open(Chinese)
	hostile := strings.Repeat("a: b; c. d, ", longest/12)
	c.Text("warm")
	for _, text := range []string{"there is no session lab", hostile} {
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			for b.Loop() {
				c.Text(text)
			}
		})
	}
}
