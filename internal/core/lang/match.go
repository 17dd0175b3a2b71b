package lang

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is looked for in one message. A message may have been made by anybody: what is longer, or more nested, stays English.
const (
	longest   = 8 << 10
	deepest   = 4  // captures within captures
	mostParts = 12 // a message is taken apart into at most
)

// least is how many letters a format has to say itself to be recognized by them.
const least = 3

// indexed is how many bytes of a format's beginning it is found by.
const indexed = 3

// matcher finds the formats that finished texts were made with.
type matcher struct {
	byStart map[string][]rule // by the first bytes; with the most literal text first
	others  []rule            // that begin with a verb, or with less
}

// rule is one format with its translation.
type rule struct {
	from, to Format
	literal  int
}

func newMatcher(entries []Entry) *matcher {
	m := &matcher{byStart: map[string][]rule{}}
	for _, e := range entries {
		r := rule{from: ParseFormat(e.ID), to: ParseFormat(e.Text)}
		if r.literal = r.from.literal(); len(r.from.Verbs) == 0 || r.literal < least || slices.ContainsFunc(r.from.Verbs, func(v Verb) bool { return v.Star }) {
			continue
		}
		if start := r.from.Literals[0]; len(start) >= indexed {
			m.byStart[start[:indexed]] = append(m.byStart[start[:indexed]], r)
		} else {
			m.others = append(m.others, r)
		}
	}
	for _, rules := range m.byStart {
		sortRules(rules)
	}
	sortRules(m.others)
	return m
}

func sortRules(rules []rule) {
	slices.SortStableFunc(rules, func(a, b rule) int { return cmp.Compare(b.literal, a.literal) })
}

// find returns the rule with the most literal text of those that text can be made with, and what stands where its verbs do, by the number of the argument.
func (m *matcher) find(text string) (found rule, args []string, ok bool) {
	var lists [2][]rule
	if len(text) >= indexed {
		lists[0] = m.byStart[text[:indexed]]
	}
	lists[1] = m.others
	for _, rules := range lists {
		for _, r := range rules {
			if ok && r.literal <= found.literal {
				break
			}
			if a, fits := r.from.match(text); fits {
				found, args, ok = r, a, true
				break
			}
		}
	}
	return found, args, ok
}

// match says what stands where the verbs of the format do, by the number of the argument. It takes time in proportion to the text: a verb takes no more than up to
// the first place where the literal after it stands.
func (f Format) match(text string) (args []string, ok bool) {
	last := len(f.Verbs)
	if !strings.HasPrefix(text, f.Literals[0]) || len(text) < len(f.Literals[0])+len(f.Literals[last]) || !strings.HasSuffix(text, f.Literals[last]) {
		return nil, false
	}
	text = text[len(f.Literals[0]) : len(text)-len(f.Literals[last])]
	for i, v := range f.Verbs {
		var part string
		if i == last-1 {
			part, text = text, ""
		} else if part, text, ok = v.take(text, f.Literals[i+1]); !ok {
			return nil, false
		}
		if !v.takes(part) {
			return nil, false
		}
		for len(args) <= v.Arg {
			args = append(args, "")
		}
		if args[v.Arg] != "" && args[v.Arg] != part {
			return nil, false
		}
		args[v.Arg] = part
	}
	return args, true
}

// take divides text into what the verb shows, the literal after that, which is left out, and the rest.
func (v Verb) take(text, next string) (part, rest string, ok bool) {
	switch v.Kind {
	case 'd':
		end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '-' })
		if end < 0 {
			return "", "", false
		}
		rest, ok = strings.CutPrefix(text[end:], next)
		return text[:end], rest, ok
	case 'q':
		q, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", false
		}
		rest, ok = strings.CutPrefix(text[len(q):], next)
		return q, rest, ok
	}
	if next == "" {
		return "", text, true
	}
	return strings.Cut(text, next)
}

// takes says whether the verb can have shown part.
func (v Verb) takes(part string) bool {
	switch v.Kind {
	case 'd':
		_, err := strconv.ParseInt(part, 10, 64)
		return err == nil
	case 'f', 'g':
		_, err := strconv.ParseFloat(part, 64)
		return err == nil
	case 'q':
		q, err := strconv.QuotedPrefix(part)
		return err == nil && q == part
	}
	return true
}
