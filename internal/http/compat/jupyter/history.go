package jupyter

import (
	"regexp"
	"slices"
	"strings"

	"cove/internal/server/hub"
)

// Bounds of the inputs of before that a client gets.
const (
	mostHistory  = 1000
	historyRoom  = 1 << 20 // bytes of code
	longestGlob  = 100     // bytes of a pattern; with historyRoom it bounds the time that a search takes
	historyLabel = 1       // the number of the only session that there is: inputs of interpreters before this one are in it, too
)

// historyRequest is the content of a history_request of Jupyter's protocol. All inputs are as they were sent, whatever Raw of it a client asks for.
type historyRequest struct {
	Output  bool   `json:"output"`
	Type    string `json:"hist_access_type"` // "tail", "range" or "search"; others are as tail
	Session int    `json:"session"`          // range: 0 is the present one, and negative numbers are those before
	Start   int    `json:"start"`            // range: the first line; negative: from the end
	Stop    *int   `json:"stop"`             // range: after the last line; nil: the end
	N       int    `json:"n"`                // tail and search: so many at most; 0: as many as there are
	Pattern string `json:"pattern"`          // search: * and ? stand for other text, as in SQLite's GLOB
	Unique  bool   `json:"unique"`           // search: the same input comes once
}

// input is one of the kernel's inputs. Lines are numbered from 1, from the oldest input that is looked at.
type input struct {
	line int
	code string
}

// history returns inputs of before. Their outputs are not kept in that form, and are null.
func (k *shared) history(r *request) {
	var in historyRequest
	r.into(&in)
	all, err := k.inputs(r)
	past := [][]any{}
	for _, one := range in.choose(all) {
		var input any = one.code
		if in.Output {
			input = []any{input, nil}
		}
		past = append(past, []any{historyLabel, one.line, input})
	}
	k.outcome(r, err, map[string]any{"history": past})
}

// inputs returns the last inputs, the oldest first. Code that took no number is none, as far as that is known: nothing but memory says so.
func (k *shared) inputs(r *request) ([]input, error) {
	var all []input
	var page hub.Page
	for size := 0; len(all) < mostHistory; {
		page.Limit = min(100, mostHistory-len(all))
		list, err := k.s.Hub.Executions(r.ctx, r.who, hub.ExecutionFilter{Session: k.place.session.ID, Kernel: k.place.kernel}, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if size += len(list.Items[i].Code); size > historyRoom {
				break
			}
			if !k.isHidden(list.Items[i].ID) && !strings.HasPrefix(list.Items[i].Code, ownCode) {
				all = append(all, input{code: list.Items[i].Code})
			}
		}
		if page.After = list.Next; list.Next == "" || size > historyRoom {
			break
		}
	}
	slices.Reverse(all)
	for i := range all {
		all[i].line = i + 1
	}
	return all, nil
}

// choose returns the inputs that a client asks for, the oldest first.
func (in historyRequest) choose(all []input) []input {
	switch in.Type {
	case "range":
		return in.span(all)
	case "search":
		all = in.search(all)
	}
	if in.N > 0 && in.N < len(all) {
		all = all[len(all)-in.N:]
	}
	return all
}

// span returns the lines from Start up to Stop.
func (in historyRequest) span(all []input) []input {
	if in.Session != 0 && in.Session != historyLabel {
		return nil
	}
	behind := len(all) + 1
	at := func(line int) int { // a line's index
		if line < 0 {
			line += behind
		}
		return min(max(line, 1), behind) - 1
	}
	from, to := at(in.Start), behind-1
	if in.Stop != nil {
		to = at(*in.Stop)
	}
	return all[from:max(from, to)]
}

// search returns the inputs that the pattern fits; with Unique the last one of each.
func (in historyRequest) search(all []input) (out []input) {
	pattern := in.Pattern
	if pattern == "" {
		pattern = "*"
	}
	if len(pattern) > longestGlob {
		return nil
	}
	glob := globbed(pattern)
	seen := map[string]bool{}
	for _, one := range slices.Backward(all) {
		if in.Unique && seen[one.code] || !glob.MatchString(one.code) {
			continue
		}
		seen[one.code] = true
		out = append(out, one)
	}
	slices.Reverse(out)
	return out
}

// globbed is a pattern as an expression.
func globbed(pattern string) *regexp.Regexp {
	parts := strings.NewReplacer(`\*`, ".*", `\?`, ".")
	return regexp.MustCompile(`(?s)\A` + parts.Replace(regexp.QuoteMeta(pattern)) + `\z`)
}
