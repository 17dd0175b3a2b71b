package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"math/rand/v2"

	"cove/internal/core/problem"
)

// planForm is the form of the files in a run's folder that this program writes.
const planForm = 1

// Kind is what answers the tasks of a run.
type Kind string

// The kinds of runs.
const (
	KindModel      Kind = "model"
	KindReferences Kind = "references" // the tasks' own reference programs
)

// Plan is what a run is about. Runs with the same Digest can be compared.
type Plan struct {
	Form        int       `json:"form"`
	Kind        Kind      `json:"kind"`
	Name        string    `json:"name"`
	Model       string    `json:"model,omitempty"`
	Seed        int64     `json:"seed"`
	Temperature *float64  `json:"temperature,omitempty"`
	Cove        string    `json:"cove"` // its version
	Settings    Settings  `json:"settings"`
	Machine     Machine   `json:"machine"`
	Python      string    `json:"python,omitempty"`   // its version, when a session was open
	Packages    string    `json:"packages,omitempty"` // SHA-256 of the packages' names and versions
	Created     time.Time `json:"created"`
	Sources     []Source  `json:"sources"`
	Digest      string    `json:"digest"` // SHA-256 of all tasks
	Tasks       []string  `json:"tasks"`  // ids
}

// Settings are those that the figures depend on.
type Settings struct {
	Engine        string  `json:"engine"`
	Packages      string  `json:"packages"`
	Memory        int64   `json:"memory_bytes"`
	CPUs          float64 `json:"cpus"`
	Timeout       float64 `json:"timeout_seconds"`
	Install       bool    `json:"install"`
	Offline       bool    `json:"offline,omitempty"`
	Build         bool    `json:"build,omitempty"`
	MaxSteps      int     `json:"max_steps"`
	Tries         int     `json:"tries,omitempty"` // of each task at once; 0: one
	MaxTurnTokens int64   `json:"max_turn_tokens"`
	MaxTime       float64 `json:"max_time_seconds"`
}

// Machine is where a run began. Its times depend on it, and on Parallel.
type Machine struct {
	System   string `json:"system"`
	CPUs     int    `json:"cpus"`
	Parallel int    `json:"parallel"`
}

// NewPlan returns the plan of a run over a set, without what its caller knows: the model, the version, the settings and the machine.
func NewPlan(kind Kind, set Set, seed int64) (Plan, error) {
	p := Plan{Form: planForm, Kind: kind, Name: set.Name, Seed: seed, Sources: set.Sources, Created: time.Now().UTC().Truncate(time.Second)}
	sum := sha256.New()
	e := json.NewEncoder(sum)
	for _, t := range set.Tasks {
		p.Tasks = append(p.Tasks, t.ID)
		if err := e.Encode(t); err != nil {
			return p, fmt.Errorf("write down the tasks of a run: %w", err)
		}
	}
	p.Digest = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// sameAs returns why a run that goes by there cannot go on by p.
func (p Plan) sameAs(there Plan, folder string) error {
	var differ []string
	unless := func(same bool, what string) {
		if !same {
			differ = append(differ, what)
		}
	}
	unless(p.Kind == there.Kind, "what answers (a model, or the references)")
	unless(p.Digest == there.Digest, "the tasks")
	unless(p.Model == there.Model, "the model ("+there.Model+")")
	unless(p.Seed == there.Seed, fmt.Sprintf("the seed (%d)", there.Seed))
	unless((p.Temperature == nil) == (there.Temperature == nil) && (p.Temperature == nil || *p.Temperature == *there.Temperature), "the temperature")
	unless(p.Settings == there.Settings, "the settings of the sandbox or of a turn")
	unless(p.Cove == there.Cove, "the version of cove ("+there.Cove+")")
	if len(differ) == 0 {
		return nil
	}
	return problem.New(problem.EvalOther, "the folder "+folder+" has another run: it differs in "+strings.Join(differ, ", ")).
		WithHint("give the same files and flags to go on with that run, or give --run another folder")
}

// digestOf is the hash of the packages of an environment.
func digestOf(packages map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(sum, "%s==%s\n", name, packages[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Choice says which tasks of a set a run has.
type Choice struct {
	Only   []string // patterns of ids, as path.Match has them; none: all
	Most   int      // how many; 0: all. A series counts as its tasks, and is in the run as a whole or not at all
	Sample bool     // choose them at random by Seed rather than from the beginning
	Seed   int64
}

// Choose returns the set with the tasks that were chosen, in the set's order. Problems: eval_empty, usage.
func (s Set) Choose(c Choice) (Set, error) {
	groups := groupsOf(s.Tasks)
	var kept [][]Task
	for _, g := range groups {
		ok, err := c.names(g)
		if err != nil {
			return s, err
		}
		if ok {
			kept = append(kept, g)
		}
	}
	order := make([]int, len(kept))
	for i := range order {
		order[i] = i
	}
	if c.Sample {
		random := rand.New(rand.NewPCG(uint64(c.Seed), 0))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	taken, count := []int{}, 0
	for _, i := range order {
		if n := len(kept[i]); c.Most <= 0 || count+n <= c.Most {
			taken, count = append(taken, i), count+n
		}
	}
	slices.Sort(taken)
	s.Tasks = nil
	for _, i := range taken {
		s.Tasks = append(s.Tasks, kept[i]...)
	}
	if len(s.Tasks) == 0 {
		return s, problem.New(problem.EvalEmpty, "no task is left to run").WithHint("loosen --only or --max-tasks; a series is taken as a whole")
	}
	return s, nil
}

func (c Choice) names(group []Task) (bool, error) {
	for _, pattern := range c.Only {
		for _, t := range group {
			ok, err := path.Match(pattern, t.ID)
			if err != nil {
				return false, problem.New(problem.Usage, fmt.Sprintf("--only %q is not a pattern", pattern)).WithHint("write an id, or a pattern such as 'HumanEval/1?' or '*/7'")
			}
			if ok || t.ID == pattern || t.Series == pattern {
				return true, nil
			}
		}
	}
	return len(c.Only) == 0, nil
}

// groupsOf splits tasks into those that share a session. Tasks of a series follow each other.
func groupsOf(tasks []Task) [][]Task {
	var out [][]Task
	for i, t := range tasks {
		if i > 0 && t.Series != "" && t.Series == tasks[i-1].Series {
			out[len(out)-1] = append(out[len(out)-1], t)
		} else {
			out = append(out, []Task{t})
		}
	}
	return out
}
