package display_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cove/internal/python/display"
	"cove/internal/python/kernel"
)

func TestText(t *testing.T) {
	t.Parallel()
	const markdown = "<IPython.core.display.Markdown object>"
	styler := `<style>td {color: red}</style><table><thead><tr><th class="blank">&nbsp;</th><th>城市</th><th>n</th></tr></thead>
<tbody><tr><th>0</th><td>北京 &amp; more</td><td>1.5</td></tr></tbody></table>`
	for name, c := range map[string]struct {
		data kernel.Bundle
		want string
	}{
		"a value":                {kernel.Bundle{"text/plain": "42"}, "42"},
		"a value with Markdown":  {kernel.Bundle{"text/plain": "42", "text/markdown": "**42**"}, "42"},
		"a value in brackets":    {kernel.Bundle{"text/plain": "<class 'int'>", "text/latex": "x"}, "<class 'int'>"},
		"Markdown":               {kernel.Bundle{"text/plain": markdown, "text/markdown": "# Answer is 42"}, "# Answer is 42"},
		"LaTeX":                  {kernel.Bundle{"text/plain": "<IPython.core.display.Math object>", "text/latex": "$x^2$"}, "$x^2$"},
		"JSON":                   {kernel.Bundle{"text/plain": "<IPython.core.display.JSON object>", "application/json": json.RawMessage(`{"a":[1]}`)}, "{\n  \"a\": [\n    1\n  ]\n}"},
		"a table in HTML":        {kernel.Bundle{"text/plain": "<pandas.io.formats.style.Styler at 0x7f1>", "text/html": styler}, "| 城市 | n\n0 | 北京 & more | 1.5"},
		"internals and HTML":     {kernel.Bundle{"text/plain": "GT(_body=<great_tables.Body object at 0x7f>)", "text/html": "<h1>Table</h1><p>of <b>two</b> words</p>"}, "Table\nof two words"},
		"HTML without words":     {kernel.Bundle{"text/plain": "<folium.folium.Map at 0x7f1>", "text/html": "<script>draw('a')</script><svg><text>x</text></svg>"}, "[HTML of 51 bytes]"},
		"a style sheet":          {kernel.Bundle{"text/plain": "<IPython.core.display.HTML object>", "text/html": "<style>b {}</style>\n"}, ""},
		"an object without more": {kernel.Bundle{"text/plain": "<__main__.A at 0x7f1>"}, "<__main__.A at 0x7f1>"},
		"nothing":                {kernel.Bundle{}, ""},
		"what is no text":        {kernel.Bundle{"text/plain": 1.0, "text/html": nil, "text/markdown": []any{}}, ""},
	} {
		if got := display.Text(c.data); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestHTMLTextIsBounded reads pages that nobody honest writes.
func TestHTMLTextIsBounded(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"deep":        strings.Repeat("<div>", 300_000) + "end",
		"long words":  strings.Repeat("x", 4<<20),
		"many words":  strings.Repeat("x ", 2<<20),
		"many cells":  "<table>" + strings.Repeat("<tr><td>a<td>b", 1<<20),
		"a long tag":  "<a " + strings.Repeat("b=c ", 1<<20) + ">",
		"not UTF-8":   "<p>\xff\xfe" + strings.Repeat("\xff", 100_000),
		"never ended": "<script>" + strings.Repeat("<p>a", 1<<20),
		"a title":     "<title>" + strings.Repeat("é", 1000),
	} {
		if got := display.HTMLText(page); len(got) > 40<<10 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		if got := display.HTMLTitle(page); len(got) > 200 {
			t.Errorf("%s: a title of %d bytes", name, len(got))
		}
	}
	if got := display.HTMLTitle("<html><head><title>Sales\n of 2024</title></head><body>x</body>"); got != "Sales of 2024" {
		t.Errorf("the title is %q", got)
	}
}

func picture(data string) kernel.Bundle {
	return kernel.Bundle{"image/png": base64.StdEncoding.EncodeToString([]byte(data)), "text/plain": "<Figure size 640x480 with 1 Axes>"}
}

func stdout(text string) kernel.Stream { return kernel.Stream{Name: "stdout", Data: []byte(text)} }

func TestLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events                []kernel.Event
		out, err, all, figure string
	}{
		"streams, a value and an error": {
			[]kernel.Event{
				stdout("a\xff"), kernel.Stream{Name: "stderr", Data: []byte("w\n")}, kernel.Result{Data: kernel.Bundle{"text/plain": "42"}},
				kernel.Error{Traceback: []string{"Traceback", "E: x"}, Hint: "do so"}, kernel.Done{},
			},
			"a\ufffd42\n", "w\nTraceback\nE: x\ndo so\n", "a\ufffdw\n42\nTraceback\nE: x\ndo so\n", "",
		},
		"a loss":     {[]kernel.Event{kernel.Rollback{Reason: "kingfisher"}}, "", "The session started anew (kingfisher).\n", "The session started anew (kingfisher).\n", ""},
		"a figure":   {[]kernel.Event{stdout("a"), kernel.Display{Data: picture("P")}, stdout("b")}, "ab", "", "ab", "P"},
		"an update":  {[]kernel.Event{kernel.Display{Data: kernel.Bundle{"text/plain": "1 %"}, ID: "x"}, stdout("a\n"), kernel.Display{Data: kernel.Bundle{"text/plain": "2 %"}, ID: "x", Update: true}}, "2 %\na\n", "", "2 %\na\n", ""},
		"an image":   {[]kernel.Event{kernel.Display{Data: picture("P"), ID: "x"}, kernel.Display{Data: picture("Q"), ID: "x", Update: true}, kernel.Display{Data: picture("R"), ID: "y"}}, "", "", "", "Q R"},
		"no display": {[]kernel.Event{kernel.Display{Data: kernel.Bundle{"text/plain": "new"}, ID: "x", Update: true}}, "new\n", "", "new\n", ""},
		"a clear":    {[]kernel.Event{stdout("a"), kernel.Display{Data: picture("P")}, kernel.ClearOutput{}, stdout("b")}, "b", "", "b", ""},
		"a clear that waits": {[]kernel.Event{
			kernel.Display{Data: picture("P")}, kernel.ClearOutput{Wait: true}, kernel.Display{Data: picture("Q")}, kernel.ClearOutput{Wait: true},
		}, "", "", "", "Q"},
		"an update after a clear": {[]kernel.Event{kernel.Display{Data: picture("P"), ID: "x"}, kernel.ClearOutput{}, kernel.Display{Data: picture("Q"), ID: "x", Update: true}}, "", "", "", "Q"},
		"what is no picture":      {[]kernel.Event{kernel.Display{Data: kernel.Bundle{"image/png": "not base64", "text/plain": "<Figure>"}}}, "<Figure>\n", "", "<Figure>\n", ""},
	} {
		l := display.Screen{Room: 1000, Pictures: 10, PictureRoom: 1000}
		for _, e := range c.events {
			l.Add(e)
		}
		var figures []string
		for _, p := range l.Shown() {
			figures = append(figures, string(p.Data))
		}
		if l.Stdout() != c.out || l.Stderr() != c.err || l.All() != c.all || strings.Join(figures, " ") != c.figure || l.Cut || l.LeftOut != 0 {
			t.Errorf("%s: %q, %q, %q, %q, cut %t, left out %d", name, l.Stdout(), l.Stderr(), l.All(), figures, l.Cut, l.LeftOut)
		}
	}
}

// TestLogIsBounded gives more than there is room for, in ways that replace and clear.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	l := display.Screen{Room: 100, Pictures: 3, PictureRoom: 50}
	for n := range 20_000 {
		l.Add(kernel.Stream{Name: []string{"stdout", "stderr"}[n%2], Data: []byte("x")})
	}
	for n := range 6 {
		l.Add(kernel.Display{Data: picture(fmt.Sprint(n)), ID: fmt.Sprint(n)})
	}
	l.Add(kernel.Display{Data: picture(strings.Repeat("y", 60)), ID: "0", Update: true})
	l.Add(kernel.Display{Data: picture("new"), ID: "1", Update: true})
	if len(l.All()) != 100 || !l.Cut || l.LeftOut != 4 || len(l.Shown()) != 3 || string(l.Shown()[0].Data) != "0" || string(l.Shown()[1].Data) != "new" {
		t.Errorf("%d bytes, cut %t, left out %d, %q", len(l.All()), l.Cut, l.LeftOut, l.Shown())
	}
	for n := range 25 {
		l.Add(kernel.ClearOutput{Wait: true})
		l.Add(kernel.Display{Data: picture(fmt.Sprint(n))})
	}
	if got := l.Shown(); len(got) != 1 || string(got[0].Data) != "24" || l.Cut || l.LeftOut != 0 {
		t.Errorf("of 25 steps %q, cut %t, left out %d", got, l.Cut, l.LeftOut)
	}
	l = display.Screen{Room: 1 << 20}
	for n := range 30_000 {
		l.Add(kernel.Stream{Name: []string{"stdout", "stderr"}[n%2], Data: []byte("x")})
	}
	if len(l.All()) > 20_000 || !l.Cut {
		t.Errorf("%d bytes in parts of one each, cut %t", len(l.All()), l.Cut)
	}
}
