package terminal_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/commands/terminal"
)

const answer = "# 结果\n\nThe **North** grew *fastest*: `df.sum()` says 12 %, see [the page](https://example.com/a).\n\n" +
	"| 地区 | Umsatz | note |\n|:---|---:|:---:|\n| 华东 | 1,200 | ok |\n| Überlingen | 7 | a **bold** word |\n\n" +
	"- one\n- two\n  1. first\n  2. second is a longer sentence that does not fit\n\n  a paragraph of the second\n- [x] done\n\n" +
	"> 引用一句很长的话，它在窄的终端里要换行，标点不能在行首。\n\n```python\nfor i in range(3):\n\n\tprint(i)\n```\n\nA < B &amp; C\\*D\n\n---\nend\n"

func TestMarkdownFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{10, 20, 40, 80, 140} {
		for _, row := range terminal.Markdown(answer, terminal.MarkdownOptions{Columns: columns}) {
			if w := terminal.Width(row); w > columns {
				t.Errorf("at %d columns a row has %d: %q", columns, w, row)
			}
		}
	}
}

func TestMarkdownIsLaidOut(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]string{
		40: `^[1;4m结果^[0m

The ^[1mNorth^[0m grew ^[3mfastest^[0m: ^[36mdf.sum()^[0m says 12
%, see the page^[2m (https://example.com/a)^[0m.

^[1m地区^[0m       ^[2m│^[0m ^[1mUmsatz^[0m ^[2m│^[0m    ^[1mnote^[0m
^[2m───────────┼────────┼────────────^[0m
华东       ^[2m│^[0m  1,200 ^[2m│^[0m     ok
Überlingen ^[2m│^[0m      7 ^[2m│^[0m a ^[1mbold^[0m word`,
		20: `^[1;4m结果^[0m

The ^[1mNorth^[0m grew
^[3mfastest^[0m: ^[36mdf.sum()^[0m
says 12 %, see the
page^[2m^[0m
^[2m(https://example.com^[0m
^[2m/a)^[0m.

^[1m地区: ^[0m华东
^[1mUmsatz: ^[0m1,200
^[1mnote: ^[0mok

^[1m地区: ^[0mÜberlingen
^[1mUmsatz: ^[0m7
^[1mnote: ^[0ma ^[1mbold^[0m word`,
	} {
		source, _, _ := strings.Cut(answer, "\n\n- one")
		got := strings.ReplaceAll(strings.Join(terminal.Markdown(source, terminal.MarkdownOptions{Columns: columns, Colour: true}), "\n"), "\x1b", "^")
		want = strings.ReplaceAll(want, "^[2m^[0m\n", "\n")
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("at %d columns (-want +got):\n%s", columns, diff)
		}
	}
}

// TestMarkdownInPieces wants the rows to be the same however the text is divided.
func TestMarkdownInPieces(t *testing.T) {
	t.Parallel()
	o := terminal.MarkdownOptions{Columns: 60, Colour: true}
	want := terminal.Markdown(answer, o)
	for range 200 {
		m := terminal.NewMarkup(o)
		var got []string
		for rest := answer; rest != ""; {
			n := min(len(rest), 1+rand.IntN(12))
			got = append(got, m.Add(rest[:n])...)
			m.Tail()()
			rest = rest[n:]
		}
		got = append(got, m.Rest()...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestMarkdownCommandsNoTerminal feeds what would have a terminal do something, also by the names that HTML has for characters.
func TestMarkdownCommandsNoTerminal(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"a\x1b]0;title\x07b", "&#27;]0;title&#7;", "[x](http://a/&#x1b;[2J)", "![x](\x1b[2J)", "```py\n\x1b[2J\n```", "| \x1b[H |\n|---|\n| &#27;[H |", "`\x1b[H`", "<b \x1b[2J>", "<div>\n\x1b[2J",
		"\u202eevil", "\u009b2J", "# \x1b[2J\n\n> \x1b[2J\n\n1. \x1b[2J\n", "<http://a/\x1b[2J>", "    \x1b[2J", "\r\x1b[A", "~~\x1b[2J~~ **&#155;2J**",
	} {
		for _, colour := range []bool{false, true} {
			shown := strings.Join(terminal.Markdown(source, terminal.MarkdownOptions{Columns: 30, Colour: colour, Highlight: func(code, _ string) []string { return strings.Split(code, "\n") }}), "\n")
			rest := shown
			for _, look := range []string{"0", "1", "1;4", "2", "3", "9", "36", "1;36", "1;2"} {
				rest = strings.ReplaceAll(rest, "\x1b["+look+"m", "")
			}
			for _, r := range rest {
				if r != '\n' && terminal.Control(r) || r >= 0x202a && r <= 0x202e {
					t.Errorf("%q is shown as %q", source, shown)
					break
				}
			}
		}
	}
}

// TestMarkdownWithoutEnd is about texts that are meant to take long.
func TestMarkdownWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{">", "* ", "[", "![", "`", "**a", "|a", "- ", "<", "&", "1. ", "a\n", "```\n", "[a](", "\\", "_", "~~"} {
		for _, n := range []int{1 << 12, 1 << 14, 1 << 17} {
			if rows := terminal.Markdown(strings.Repeat(piece, n/len(piece)), terminal.MarkdownOptions{Columns: 80}); len(rows) == 0 && piece != ">" { // quotes of nothing
				t.Errorf("%q is not shown", piece)
			}
		}
	}
}
