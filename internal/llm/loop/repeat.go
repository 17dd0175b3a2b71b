package loop

import "strings"

// repeatLimit is how often in a row the same code may fail before the model is told to change its approach.
const repeatLimit = 3

// repetition detects that a model sends the same failing code again and again.
type repetition struct {
	code   string
	times  int
	warned bool
}

// exhausted says that running code is pointless: it failed repeatLimit times in a row and the model was told so.
func (r *repetition) exhausted(code string) bool {
	return r.warned && r.times >= repeatLimit && r.code == strings.TrimSpace(code)
}

// note records how an execution ended and returns whether to warn the model now.
func (r *repetition) note(code string, failed bool) (warn bool) {
	code = strings.TrimSpace(code)
	switch {
	case !failed:
		r.code, r.times = "", 0
	case code == r.code:
		r.times++
	default:
		r.code, r.times = code, 1
	}
	if r.times < repeatLimit || r.warned {
		return false
	}
	r.warned = true
	return true
}
