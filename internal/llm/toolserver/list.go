package toolserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/llm/tool"
)

// Bounds of what a server says of its tools.
const (
	mostPages          = 50
	mostTools          = 1000
	mostListed         = 16 << 20  // bytes of all pages together
	mostSchema         = 128 << 10 // bytes of one schema
	longestDescription = 8 << 10   // bytes; the rest is cut off
	mostWithout        = 50        // of which it is said why
	// listLife is for how long a list is believed that its server does not announce changes of.
	listLife = time.Minute
)

// list is what a server's tools are.
type list struct {
	tools   []tool.Tool
	named   map[string]string // the server's name of a tool, by ours without the server's
	without []tool.Without
	read    time.Time
}

// listed is a tool as its server describes it.
type listed struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
}

// tools returns the list of a connection's tools, and reads it again where it may have changed. Problems: tool_server_unreachable, tool_server_invalid.
func (s *server) tools(ctx context.Context, c *connection) (*list, error) {
	if l := c.tools.Load(); l != nil && !s.old(c, l) {
		return l, nil
	}
	select {
	case c.listing <- struct{}{}:
	case <-ctx.Done():
		return nil, s.unreachable("it takes long to list its tools", context.Cause(ctx))
	}
	defer func() { <-c.listing }()
	if l := c.tools.Load(); l != nil && !s.old(c, l) {
		return l, nil
	}
	c.stale.Store(false)
	l, err := s.readList(ctx, c)
	if err != nil {
		c.stale.Store(true)
		return nil, err
	}
	c.tools.Store(l)
	return l, nil
}

func (s *server) old(c *connection, l *list) bool {
	return c.stale.Load() || c.program == nil && time.Since(l.read) > listLife
}

func (s *server) readList(ctx context.Context, c *connection) (*list, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	l := &list{named: map[string]string{}, read: time.Now()}
	cursor, size := "", 0
	for range mostPages {
		next, n, err := s.readPage(ctx, c, l, cursor)
		if err != nil {
			return nil, err
		}
		if size += n; size > mostListed {
			return nil, s.invalid(fmt.Sprintf("its list of tools has more than %d MiB", mostListed>>20), nil)
		}
		if next == "" {
			return l, nil
		}
		if cursor = next; len(l.tools) >= mostTools {
			break
		}
	}
	l.leave("...", fmt.Sprintf("there are more tools than %d, or more pages of them than %d", mostTools, mostPages))
	return l, nil
}

// readPage takes in a page, and returns the cursor of the next one, and how many bytes it had.
func (s *server) readPage(ctx context.Context, c *connection, l *list, cursor string) (next string, size int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &kept{}
	if _, err := c.session.ListTools(keeping(ctx, k), &sdk.ListToolsParams{Cursor: cursor}); err != nil {
		if why := context.Cause(c.guard.life); why != nil {
			err = why
		}
		return "", 0, s.unreachable("it does not list its tools", err)
	}
	if k.raw == nil {
		return "", 0, s.unreachable("it does not list its tools", errEnded)
	}
	var page struct {
		Tools json.RawMessage `json:"tools"`
		Next  string          `json:"nextCursor"`
	}
	if err := json.Unmarshal(k.raw, &page); err != nil {
		return "", 0, s.invalid("its list of tools is none", err)
	}
	err = elements(page.Tools, mostTools-len(l.tools), func(d *json.Decoder) error {
		var one listed
		if err := d.Decode(&one); err != nil {
			return err
		}
		s.add(l, one)
		return nil
	})
	if err != nil {
		return "", 0, s.invalid("its list of tools is none", err)
	}
	return page.Next, len(k.raw), nil
}

// add takes a tool in, or notes why not.
func (s *server) add(l *list, one listed) {
	shown := s.scrub.text(printable(one.Name))
	if !s.offers(one.Name) {
		return
	}
	name := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			return c
		}
		return '_'
	}, one.Name)
	t := tool.Tool{Name: s.Name + "." + name, Description: s.scrub.text(cut(one.Description, longestDescription)), Parameters: one.Input, Result: one.Output, Asks: s.asks(one.Name)}
	if t.Description == "" {
		t.Description = s.scrub.text(cut(one.Title, longestDescription))
	}
	_, twice := l.named[name]
	switch {
	case name == "":
		l.leave(shown, "it has no name")
		return
	case twice:
		l.leave(shown, "there is another tool of this name")
		return
	case len(one.Input) > mostSchema || len(one.Output) > mostSchema:
		l.leave(shown, fmt.Sprintf("a schema of it has more than %d KiB", mostSchema>>10))
		return
	}
	if _, err := tool.NewSet([]tool.Tool{t}); err != nil {
		l.leave(shown, "its name or a schema of it is not valid")
		return
	}
	l.named[name] = one.Name
	l.tools = append(l.tools, t)
}

func (l *list) leave(name, why string) {
	if len(l.without) < mostWithout {
		l.without = append(l.without, tool.Without{Name: name, Why: why})
	}
}

// elements has take decode each element of an array, up to most of them; "null" has none.
func elements(raw json.RawMessage, most int, take func(d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	switch first, err := d.Token(); {
	case len(raw) == 0 || err == nil && first == nil:
		return nil
	case err != nil || first != json.Delim('['):
		return fmt.Errorf("there is no array")
	}
	for range most {
		if !d.More() {
			break
		}
		if err := take(d); err != nil {
			return err
		}
	}
	return nil
}

// cut returns the first bytes of a text, whole characters of them.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text[:min(len(text), most+utf8.UTFMax)])
		text = text[:min(len(text), most+utf8.UTFMax)-size]
	}
	return text
}

// printable returns a name as one may print it.
func printable(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '_'
		}
		return c
	}, cut(name, 100))
}
