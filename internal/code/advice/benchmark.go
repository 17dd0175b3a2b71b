package advice

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

const (
	mostSizes  = 20
	mostSize   = 1 << 40
	mostValues = 100
	// emptyProgram is what scripts/benchmark.py calls the program that does nothing.
	emptyProgram = "an empty program"
	plotPath     = ".cove-check/growth.png"
	maxPlot      = 4 << 20
	// least is the part of its time that a program has to run beyond the start of Python for its growth to be told, in times of that start.
	least = 0.2
)

// Comparison says what to measure.
type Comparison struct {
	Against *Source  // another program; nil: none
	Sizes   []int    // each is an argument of the program, and in its environment as N; none: it is run as it is
	Args    []string // further arguments
	Runs    int      // values of each; 0 means 5
}

// Benchmark is how long programs took.
type Benchmark struct {
	Start  float64  `json:"start" doc:"Seconds that Python itself takes to start and end, at best; part of every time"`
	Timed  []Timed  `json:"timed"`
	Growth []Growth `json:"growth,omitempty" doc:"Of each program, where that can be told"`
	Plot   []byte   `json:"plot,omitempty" doc:"A PNG of the growth, in base64"`
}

// Timed is one program with one size.
type Timed struct {
	Program string    `json:"program"`
	Size    int       `json:"size,omitempty"`
	Values  []float64 `json:"values" doc:"Seconds of each run"`
	Memory  int64     `json:"memory_bytes" doc:"That it had at most; 0: not known"`
	Time    float64   `json:"time" doc:"The median of the values: one run that the machine disturbed does not change it"`
	Spread  float64   `json:"spread" doc:"How far values are from it, as a standard deviation: 1.48 times the median of the distances"`
	Best    float64   `json:"best" doc:"The smallest value: what other work on the machine only adds to"`
	Against *Against  `json:"against,omitempty" doc:"Of the second program: beside the first"`
}

// Against compares a program with the first one.
type Against struct {
	Ratio   float64 `json:"ratio" doc:"Its time in times of the first one's, the start of Python left out of both"`
	Certain bool    `json:"certain" doc:"The difference is more than twice what the spread explains"`
	Same    bool    `json:"same" doc:"Both print the same"`
}

// Growth is how the time grows: like size to the power of Exponent.
type Growth struct {
	Program  string  `json:"program"`
	Exponent float64 `json:"exponent" doc:"The time grows like the size to the power of this"`
	Sizes    int     `json:"sizes" doc:"From which it is told"`
	Words    string  `json:"words"`
}

// Benchmark measures a program, and another beside it where that is asked for. Problems: benchmark_invalid, code_invalid, program_failed, check_tool_missing, check_failed.
func (c *Checker) Benchmark(ctx context.Context, src Source, what Comparison) (Benchmark, error) {
	var b Benchmark
	if err := what.check(); err != nil {
		return b, err
	}
	s, err := c.parsed(ctx, src)
	if err != nil {
		return b, err
	}
	t := parameters{"runs": what.Runs, "sizes": append([]int{}, what.Sizes...), "args": append([]string{}, what.Args...), "against": nil}
	if what.Runs == 0 {
		t["runs"] = 5
	}
	names := []string{src.file()}
	if what.Against != nil {
		also, err := c.parsed(ctx, *what.Against)
		if err != nil {
			return b, err
		}
		s.imports = append(s.imports, also.imports...)
		name := what.Against.file()
		if name == names[0] {
			name = strings.TrimSuffix(name, path.Ext(name)) + "_other.py"
		}
		names = append(names, name)
		t["against"] = map[string]string{"file": name, "text": what.Against.Text}
	}
	m := measuring{benchmark: &b, names: names, same: map[int]bool{}}
	if err := c.run(ctx, scriptRun{script: "benchmark", src: src, tools: []string{"pyperf"}, wanted: &s, values: t, times: len(names)*max(1, len(what.Sizes)) + 1}, m.add); err != nil {
		return b, err
	}
	if want := len(names) * max(1, len(what.Sizes)); len(b.Timed) != want || !m.started {
		return b, problem.New(problem.CheckFailed, fmt.Sprintf("%d of %d measurements were made", len(b.Timed), want))
	}
	m.compare()
	if len(what.Sizes) > 1 {
		for _, name := range names {
			b.grow(name)
		}
		return b, c.plot(ctx, src, &b, names)
	}
	return b, nil
}

func (w Comparison) check() error {
	if len(w.Sizes) > mostSizes || w.Runs < 0 || w.Runs > mostValues {
		return problem.New(problem.BenchmarkInvalid, fmt.Sprintf("a benchmark has at most %d sizes and %d runs of each", mostSizes, mostValues))
	}
	for i, n := range w.Sizes {
		if n < 1 || n > mostSize || i > 0 && n <= w.Sizes[i-1] {
			return problem.New(problem.BenchmarkInvalid, "the sizes of a benchmark are numbers from 1 on, each larger than the one before it")
		}
	}
	return nil
}

// measuring collects what the script says.
type measuring struct {
	benchmark *Benchmark
	names     []string
	same      map[int]bool // by size: both print the same
	started   bool         // Benchmark.Start is known
}

func (m *measuring) add(one reply) error {
	switch one.Kind {
	case "missing":
		return missing(one)
	case "failed":
		return programFailed(one)
	case "compared":
		m.same[one.Size] = one.Same
	case "timed":
		return m.timed(one)
	}
	return nil
}

func (m *measuring) timed(one reply) error {
	if len(one.Values) == 0 || len(one.Values) > mostValues || len(m.benchmark.Timed) > 2*mostSizes {
		return problem.New(problem.CheckFailed, "the measurements cannot be used")
	}
	for _, v := range one.Values {
		if !(v > 0) || v > mostSeconds*10 {
			return problem.New(problem.CheckFailed, "the measurements cannot be used")
		}
	}
	t := Timed{Program: one.Program, Size: one.Size, Values: one.Values, Memory: min(max(0, one.Memory), mostBytes)}
	t.Time, t.Spread = spread(one.Values)
	t.Best = slices.Min(one.Values)
	if one.Program == emptyProgram {
		m.benchmark.Start, m.started = t.Best, true
		return nil
	}
	for _, name := range m.names {
		if name == one.Program {
			m.benchmark.Timed = append(m.benchmark.Timed, t)
		}
	}
	return nil
}

// compare puts the second program beside the first, for each size.
func (m *measuring) compare() {
	b := m.benchmark
	for i := range b.Timed {
		t := &b.Timed[i]
		if len(m.names) < 2 || t.Program != m.names[1] || i == 0 {
			continue
		}
		first := b.Timed[i-1]
		noise := math.Sqrt(t.Spread*t.Spread/float64(len(t.Values)) + first.Spread*first.Spread/float64(len(first.Values)))
		own, other := t.Best-b.Start, first.Best-b.Start
		t.Against = &Against{Same: m.same[t.Size], Certain: math.Abs(t.Time-first.Time) > 2*noise, Ratio: t.Best / first.Best}
		if own > least*b.Start && other > least*b.Start {
			t.Against.Ratio = own / other
		}
	}
}

// spread is the median of values, and their median distance from it, scaled to the standard deviation of a normal distribution.
func spread(values []float64) (middle, deviation float64) {
	middle = median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - middle)
	}
	return middle, 1.4826 * median(distances)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// grow tells how a program's time grows, from the sizes for which it runs for longer than Python takes to start.
func (b *Benchmark) grow(name string) {
	var xs, ys []float64
	for _, t := range b.Timed {
		if own := t.Best - b.Start; t.Program == name && own > least*b.Start {
			xs, ys = append(xs, math.Log(float64(t.Size))), append(ys, math.Log(own))
		}
	}
	if len(xs) < 2 {
		return
	}
	var mx, my, xy, xx float64
	for i := range xs {
		mx += xs[i] / float64(len(xs))
		my += ys[i] / float64(len(xs))
	}
	for i := range xs {
		xy += (xs[i] - mx) * (ys[i] - my)
		xx += (xs[i] - mx) * (xs[i] - mx)
	}
	e := xy / xx
	b.Growth = append(b.Growth, Growth{Program: name, Exponent: e, Sizes: len(xs), Words: growthWords(e)})
}

// growthWords names a growth. n and n log n cannot be told apart by a few times.
func growthWords(e float64) string {
	switch {
	case e < 0.2:
		return "hardly grows with the size"
	case e < 0.8:
		return "grows more slowly than the size"
	case e < 1.3:
		return "grows about like the size"
	case e < 1.7:
		return "grows faster than the size"
	case e < 2.4:
		return "grows about like the square of the size"
	case e < 3.4:
		return "grows about like the cube of the size"
	}
	return "grows faster than the cube of the size"
}

// series is what the plot shows of one program: size, time beyond the start of Python and spread, in seconds.
type series struct {
	Label  string       `json:"label"`
	Points [][3]float64 `json:"points"`
}

// plot draws how the programs' times grow.
func (c *Checker) plot(ctx context.Context, src Source, b *Benchmark, names []string) error {
	var all []series
	for _, name := range names {
		one := series{Label: name}
		for _, g := range b.Growth {
			if g.Program == name {
				one.Label = fmt.Sprintf("%s: exponent %.2f", name, g.Exponent)
			}
		}
		for _, t := range b.Timed {
			if t.Program == name {
				one.Points = append(one.Points, [3]float64{float64(t.Size), max(t.Best-b.Start, t.Best/1000), t.Spread})
			}
		}
		all = append(all, one)
	}
	plotted := false
	err := c.run(ctx, scriptRun{script: "benchmark", src: src, values: parameters{"series": all}}, func(one reply) error {
		plotted = plotted || one.Kind == "plotted"
		return nil
	})
	if err != nil || !plotted {
		return err
	}
	png, err := c.Session.ReadFile(ctx, plotPath, maxPlot+1)
	if err == nil && len(png) <= maxPlot && bytes.HasPrefix(png, []byte("\x89PNG\r\n\x1a\n")) {
		b.Plot = png
	}
	return err
}
