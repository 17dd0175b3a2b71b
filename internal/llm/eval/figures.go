package eval

import (
	"math"
	"slices"
)

// Shares that figures have, in the order of reports.
const (
	ShareRight     = "right"
	ShareGenerated = "generated"
	ShareAnswered  = "answered"
	ShareInstalled = "installed"
	ShareExecuted  = "executed"
	ShareRepaired1 = "repaired_1"
	ShareRepaired2 = "repaired_2"
	ShareRepaired3 = "repaired_3"
)

// ShareNames are the names of all shares, in the order of reports.
func ShareNames() []string {
	return []string{ShareRight, ShareGenerated, ShareAnswered, ShareInstalled, ShareExecuted, ShareRepaired1, ShareRepaired2, ShareRepaired3}
}

// Parts of a task's time, in the order of reports.
const (
	PartTotal    = "total"
	PartModel    = "model"
	PartInstall  = "install"
	PartRun      = "run"
	PartOverhead = "overhead"
)

// PartNames are the names of the parts of a task's time, the total first.
func PartNames() []string {
	return []string{PartTotal, PartModel, PartInstall, PartRun, PartOverhead}
}

// Figures are what the records of a run come to.
type Figures struct {
	Tasks    int               `json:"tasks"`    // of the run
	Judged   int               `json:"judged"`   // those that the shares are of
	Unjudged int               `json:"unjudged"` // those in which cove or a service failed
	Shares   map[string]Share  `json:"shares"`
	Seconds  map[string]Spread `json:"seconds"` // of the judged tasks
	Tokens   Tokens            `json:"tokens"`  // of all records, as the cost
	Cost     Cost              `json:"cost"`
	Limited  int               `json:"limited"`         // judged tasks whose turn was ended by a limit
	Alone    *Share            `json:"alone,omitempty"` // of all tries of tasks that were answered several times: how many were right, each for itself
}

// Share is how many of a number of things are right. Low and High bound the true share with 95 % confidence, by Wilson's score interval, for things
// that are independent of each other.
type Share struct {
	Right int     `json:"right"`
	Of    int     `json:"of"`
	Share float64 `json:"share"` // 0 where Of is 0
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Spread is what a number of durations are, in seconds. Between two of them the quantiles are interpolated.
type Spread struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Sum    float64 `json:"sum"`
}

// z is the quantile of the standard normal distribution for two-sided 95 %.
const z = 1.959963984540054

// NewShare returns a share with Wilson's score interval (E. B. Wilson, 1927).
func NewShare(right, of int) Share {
	s := Share{Right: right, Of: of, High: 1}
	if of == 0 {
		return s
	}
	n, p := float64(of), float64(right)/float64(of)
	centre, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	s.Share, s.Low, s.High = p, max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n))
	if right == 0 {
		s.Low = 0
	}
	if right == of {
		s.High = 1
	}
	return s
}

// Compute returns the figures of a run of that many tasks. The order of the records does not matter.
func Compute(tasks int, records []Record) Figures {
	f := Figures{Tasks: tasks, Shares: map[string]Share{}, Seconds: map[string]Spread{}}
	right, of := map[string]int{}, map[string]int{}
	count := func(name string, isRight bool) {
		of[name]++
		if isRight {
			right[name]++
		}
	}
	times := map[string][]float64{}
	var tried Tried
	millionths := int64(0) // so that the sum does not depend on the order
	for _, r := range records {
		f.Tokens = f.Tokens.plus(r.Tokens)
		if r.Cost.Currency != "" {
			millionths += int64(math.Round(r.Cost.Amount * 1e6))
			f.Cost.Currency = r.Cost.Currency
		}
		if !r.Judged {
			f.Unjudged++
			continue
		}
		f.Judged++
		if r.Reason != "" && r.Reason != "complete" {
			f.Limited++
		}
		tally(r, count)
		if r.Tried != nil {
			tried.Number, tried.Right = tried.Number+r.Tried.Number, tried.Right+r.Tried.Right
		}
		for name, seconds := range r.Seconds.parts() {
			times[name] = append(times[name], seconds)
		}
	}
	f.Cost.Amount = float64(millionths) / 1e6
	if tried.Number > 0 {
		alone := NewShare(tried.Right, tried.Number)
		f.Alone = &alone
	}
	for _, name := range ShareNames() {
		f.Shares[name] = NewShare(right[name], of[name])
	}
	for _, name := range PartNames() {
		f.Seconds[name] = newSpread(times[name])
	}
	return f
}

func (t Tokens) plus(o Tokens) Tokens {
	return Tokens{t.Input + o.Input, t.Output + o.Output, t.Cached + o.Cached, t.Estimated || o.Estimated}
}

// tally counts what one judged record adds to the shares.
func tally(r Record, count func(name string, right bool)) {
	count(ShareRight, r.Right)
	if has, ok := r.generates(); has {
		count(ShareGenerated, ok)
	}
	if has, ok := r.answers(); has {
		count(ShareAnswered, ok)
	}
	for _, i := range r.Installs {
		count(ShareInstalled, i.Right)
	}
	for _, e := range r.Executions {
		count(ShareExecuted, e.OK())
	}
	for _, after := range repairs(r.Executions) {
		for n, name := range []string{ShareRepaired1, ShareRepaired2, ShareRepaired3} {
			count(name, after > 0 && after <= n+1)
		}
	}
}

// repairs returns, for each error that came first or after code that ended well, how many executions later code ended well again; 0: none did.
func repairs(executions []Execution) []int {
	var out []int
	failing := 0
	for _, e := range executions {
		switch {
		case !e.OK():
			failing++
		case failing > 0:
			out, failing = append(out, failing), 0
		}
	}
	if failing > 0 {
		out = append(out, 0)
	}
	return out
}

func (s Seconds) parts() map[string]float64 {
	return map[string]float64{PartTotal: s.Total, PartModel: s.Model, PartInstall: s.Install, PartRun: s.Run, PartOverhead: s.Overhead}
}

func newSpread(seconds []float64) Spread {
	if len(seconds) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(seconds))
	s := Spread{Median: quantile(sorted, 0.5), P95: quantile(sorted, 0.95)}
	for _, v := range sorted {
		s.Sum += v
	}
	return s
}

// quantile interpolates between the two values of a sorted list that are next to the quantile.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}
