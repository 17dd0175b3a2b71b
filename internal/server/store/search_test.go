package store_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

func TestTextsAreCutIntoWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"Hello, hello World_2!":    "hello world 2",
		"pd.read_csv('a.csv')":     "pd read csv a",
		"数据分析":                     "数 数据 据 据分 分 分析 析",
		"用pandas读取":                "用 pandas 读 读取 取",
		"ＡＢＣ ﬁle Straße É":         "abc file straße é",
		"e\u0301te\u0301":          "été",
		strings.Repeat("é", 50):    strings.Repeat("é", 32),
		"ราคา":                     "ร รา า าค ค คา",
		"한국":                       "한 한국 국",
		"\xff\xfe broken\x00bytes": "broken bytes",
	} {
		if diff := cmp.Diff(strings.Fields(want), append([]string(nil), store.Index(text)...)); diff != "" && len(want) > 0 {
			t.Errorf("%q: %s", text, diff)
		}
	}
	var many strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&many, "%d ", i)
	}
	if n := len(store.Index(many.String())); n != 200 {
		t.Errorf("%d numbers of one text are kept", n)
	}
	for i := range 5_000 {
		fmt.Fprintf(&many, "w%d ", i)
	}
	if n := len(store.Index(many.String())); n != 1_000 {
		t.Errorf("%d words of one text are kept", n)
	}
}

func TestSnippetsAreShortAndHaveTheMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, text, want string }{
		{"churn", "Why do\n\n customers   churn?", "Why do customers churn?"},
		{"流失", strings.Repeat("数据", 100) + "客户流失率" + strings.Repeat("分析", 200), "客户流失率"},
		{"needle", strings.Repeat("hay ", 500) + "Needle" + strings.Repeat(" hay", 500), "hay Needle hay"},
		{"absent", "text", "text"},
		{"product", strings.Repeat("region ", 30) + "product" + strings.Repeat(" longer", 50), "region product longer"},
	} {
		got := store.Snippet(c.query, c.text)
		if !strings.Contains(got, c.want) || utf8.RuneCountInString(got) > 200 {
			t.Errorf("%q: %q", c.query, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, query := rapid.String().Draw(t, "text"), rapid.String().Draw(t, "query")
		if got := store.Snippet(query, text); !utf8.ValidString(got) || utf8.RuneCountInString(got) > 200 {
			t.Fatalf("%q", got)
		}
	})
}

func TestSnippetsHaveWholeWords(t *testing.T) {
	t.Parallel()
	got := store.Snippet("needle", strings.Repeat("abcdefghi ", 50)+"needle"+strings.Repeat(" qrstuvwxyz", 50))
	for _, word := range strings.Fields(got) {
		if word != "abcdefghi" && word != "needle" && word != "qrstuvwxyz" {
			t.Errorf("%q is a part of a word in %q", word, got)
		}
	}
}

func TestAnswersAreFoundAsTheyAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, text, want string }{
		{"overseas", "**Overseas grew fastest: +56 %**\n\n| Region | 2024 |\n|---|---:|\n| Overseas | 106,923 |\n", "Overseas grew fastest: +56 % Region · 2024 Overseas · 106,923"},
		{"list", "# A *list*\n\n- one `x_y`\n1. [two](http://a.b/c_d)\n\n> three\n---\n```python\na * b\n```", "A list one x_y 1. two three a * b"},
		{"海外", "**海外增长最快。**其次\n\n| 地区 |\n|---|\n| 海外 |", "海外增长最快。其次 地区 海外"},
		{"quarterly", "See [the report](https://example.org/quarterly.pdf) first", "See [the report](https://example.org/quarterly.pdf) first"},
		{"b", "snake_case_name and 2 * 3 * 4, a | b", "snake_case_name and 2 * 3 * 4, a · b"},
	} {
		if got := store.AnswerSnippet(c.query, c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.query, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, query := rapid.String().Draw(t, "text"), rapid.String().Draw(t, "query")
		if got := store.AnswerSnippet(query, text); !utf8.ValidString(got) || utf8.RuneCountInString(got) > 200 {
			t.Fatalf("%q", got)
		}
	})
}

func TestHistoryIsSearched(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project}))
		one := turn("trn_1", "", 1)
		one.Prompt = "分析客户流失率 with Pandas"
		must(t, s.AddTurn(ctx, one))
		e := execution("exe_1", "trn_1")
		e.Created, e.Code = at(2), "df = pandas.read_csv('kunden.csv')"
		must(t, s.AddExecution(ctx, e))
		must(t, s.AddEvents(ctx, []stream.Event{
			event("trn_1", 1, "", `{"type":"text","delta":"unprinted"}`),
			event("trn_1", 2, "exe_1", `{"type":"output","step":1,"event":{"type":"stream","name":"stdout","text":"共有 7043 个客户\n"}}`),
			event("trn_1", 3, "exe_1", `{"type":"output","event":{"type":"stream","name":"stdout","data":"AAAA"}}`),
			event("trn_1", 4, "exe_2", `{"type":"output","event":{"type":"stream","name":"stdout","text":"another"}}`),
			event("trn_1", 5, "exe_1", `not JSON`),
		}))
		e.State = "error"
		_, err := s.FinishExecution(ctx, e, []stream.Event{event("trn_1", 6, "exe_1", `{"type":"output","event":{"type":"error","name":"KeyError","value":"'umsatz'"}}`)})
		must(t, err)
		one.State, one.Answer, one.Finished = hub.TurnCompleted, "The churn rate is 26.5 %", at(3)
		_, err = s.FinishTurn(ctx, one, nil)
		must(t, err)
		hidden := turn("trn_2", "trn_1", 4)
		hidden.Hidden, hidden.Prompt = true, "pandas in secret"
		must(t, s.AddTurn(ctx, hidden))
		secret := execution("exe_3", "trn_2")
		must(t, s.AddExecution(ctx, secret))
		secret.State = "ok"
		_, err = s.FinishExecution(ctx, secret, nil)
		must(t, err)
		lone := execution("exe_4", "")
		lone.Created, lone.Code = at(9), "import pandas"
		must(t, s.AddExecution(ctx, lone))
		lone.State = "ok"
		_, err = s.FinishExecution(ctx, lone, []stream.Event{event("exe_4", 1, "exe_4", `{"type":"result","data":{"text/plain":"Series"}}`)})
		must(t, err)

		for query, want := range map[string]string{
			"pandas": "code/exe_4 code/exe_1 prompt/", "PANDAS": "code/exe_4 code/exe_1 prompt/", "pan": "code/exe_4 code/exe_1 prompt/",
			"pan csv": "", "csv pan": "code/exe_1", "客户": "output/exe_1 prompt/", "流失率": "prompt/", "流失 pandas": "prompt/", "户": "output/exe_1 prompt/",
			"率失": "", "7043": "output/exe_1", "keyerror ums": "output/exe_1", "ch": "answer/", "26": "answer/", "another": "", "unprinted": "", "secret": "",
			"series": "output/exe_4",
		} {
			var got []string
			for p := (hub.Page{Limit: 1}); ; {
				l, err := s.Search(ctx, project, query, p)
				must(t, err)
				for _, f := range l.Items {
					got = append(got, f.Field+"/"+f.Execution)
				}
				if p.After = l.Next; l.Next == "" {
					break
				}
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%q: %s", query, diff)
			}
		}
		l, err := s.Search(ctx, project, "流失", hub.Page{})
		must(t, err)
		want := []hub.Found{{Conversation: "cnv_1", Turn: "trn_1", Session: "ses_1", At: at(1), Field: "prompt", Snippet: "分析客户流失率 with Pandas"}}
		if diff := cmp.Diff(want, l.Items); diff != "" {
			t.Error(diff)
		}
		if l, err = s.Search(ctx, "prj_b", "pandas", hub.Page{}); err != nil || len(l.Items) != 0 {
			t.Errorf("another project finds %+v, %v", l.Items, err)
		}
		for _, bad := range []string{"", "  ", "!?"} {
			_, err = s.Search(ctx, project, bad, hub.Page{})
			wantCode(t, err, "bad_query")
		}
		_, err = s.Search(ctx, project, "pandas", hub.Page{After: "x"})
		wantCode(t, err, "bad_cursor")
	})
}

// TestHostileSearches: no query is a fault, and none takes longer than it may.
func TestHostileSearches(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project}))
		for i, prompt := range []string{strings.Repeat("数据", 40_000), strings.Repeat("é", 100_000), "a\x00b \xff\xfe %_'\"; DROP TABLE words --", strings.Repeat("e\u0301\u0301", 50_000)} {
			n := turn(fmt.Sprint("trn_", i), "", i)
			n.Prompt = prompt
			must(t, s.AddTurn(ctx, n))
		}
		for query, want := range map[string]int{
			"据数": 1, strings.Repeat("数据", 5_000): 1, strings.Repeat("é", 90_000): 1, strings.Repeat("é", 31): 1, "drop table words": 1, "drop'; --": 1,
			"%": -1, "_": -1, "dro_": 1, "dr%p": 0, "\x00": -1, "a\x00b": 1, "\xff": -1, strings.Repeat("a ", 400): 1, strings.Repeat("x y ", 200): 0,
			"\u0301": 0, "\U0010FFFF": -1, "\uFDFA": 0, "İ": 0, "ẞ": 0,
		} {
			l, err := s.Search(ctx, project, query, hub.Page{})
			if want < 0 {
				wantCode(t, err, "bad_query")
				continue
			}
			if must(t, err); len(l.Items) != want {
				t.Errorf("%.40q finds %d texts, not %d", query, len(l.Items), want)
			}
		}
		store.HurrySearch(s, 1)
		_, err := s.Search(ctx, project, "drop", hub.Page{})
		wantCode(t, err, "search_too_broad")
	})
}
