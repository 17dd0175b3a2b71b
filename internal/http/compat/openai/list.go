package openai

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
)

// query are the parameters of the address that this surface knows.
type query struct {
	after         string
	before        string
	limit         int // of a page; see readPage
	oldest        bool
	include       []string
	stream        bool
	startingAfter int64 // -1: from the beginning
}

func readQuery(c *call) (query, error) {
	v := c.URL.Query()
	q := query{after: v.Get("after"), before: v.Get("before"), startingAfter: -1}
	for _, name := range []string{"include", "include[]"} {
		q.include = append(q.include, v[name]...)
	}
	for _, value := range q.include {
		if err := includable(value); err != nil {
			return q, err
		}
	}
	switch order := v.Get("order"); order {
	case "asc":
		q.oldest = true
	case "", "desc":
	default:
		return q, notOneOf("order", order, []string{"asc", "desc"})
	}
	var err error
	if q.stream, err = flag(v, "stream"); err != nil {
		return q, err
	}
	if text := v.Get("starting_after"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return q, invalid("starting_after", "invalid_type", "Invalid type for 'starting_after': expected an integer, but got '"+short(text)+"' instead.")
		}
		q.startingAfter = n
	}
	return q, nil
}

func flag(v url.Values, name string) (bool, error) {
	text := v.Get(name)
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid(name, "invalid_type", "Invalid type for '"+name+"': expected a boolean, but got '"+short(text)+"' instead.")
	}
	return b, nil
}

// readPage reads the query of a list whose pages have otherwise entries unless the client says how many, up to most.
func readPage(c *call, otherwise, most int) (query, error) {
	q, err := readQuery(c)
	if err == nil {
		q.limit, err = bound(c, otherwise, most)
	}
	return q, err
}

// bound reads "limit", which may be up to most.
func bound(c *call, otherwise, most int) (int, error) {
	text := c.URL.Query().Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, invalid("limit", "invalid_type", "Invalid type for 'limit': expected an integer, but got '"+short(text)+"' instead.")
	case n < 1:
		return 0, invalid("limit", "integer_below_min_value", "Invalid 'limit': integer below minimum value. Expected a value >= 1, but got "+text+" instead.")
	case n > most:
		return 0, invalid("limit", "integer_above_max_value", "Invalid 'limit': integer above maximum value. Expected a value <= "+strconv.Itoa(most)+", but got "+text+" instead.")
	}
	return n, nil
}

// list is a page as OpenAI sends it.
type list struct {
	Object  string  `json:"object"`
	Data    []any   `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// entry is an element of a list with its id.
type entry struct {
	id    string
	value any
}

func newList(entries []entry, more bool) list {
	l := list{Object: "list", Data: []any{}, HasMore: more}
	for _, e := range entries {
		l.Data = append(l.Data, e.value)
	}
	if n := len(entries); n > 0 {
		l.FirstID, l.LastID = &entries[0].id, &entries[n-1].id
	}
	return l
}

// cut takes a page out of a complete list, the oldest first.
func (q query) cut(entries []entry) (list, error) {
	entries = slices.Clone(entries)
	if !q.oldest {
		slices.Reverse(entries)
	}
	if q.after != "" {
		at := slices.IndexFunc(entries, func(e entry) bool { return e.id == q.after })
		if at < 0 {
			return list{}, noItem(q.after)
		}
		entries = entries[at+1:]
	}
	if q.before != "" {
		if at := slices.IndexFunc(entries, func(e entry) bool { return e.id == q.before }); at >= 0 {
			entries = entries[:at]
		}
	}
	more := len(entries) > q.limit
	return newList(entries[:min(q.limit, len(entries))], more), nil
}

// rawEntries gives kept items their ids.
func rawEntries(items []json.RawMessage) []entry {
	var out []entry
	for _, raw := range items {
		var named struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(raw, &named)
		out = append(out, entry{named.ID, raw})
	}
	return out
}
