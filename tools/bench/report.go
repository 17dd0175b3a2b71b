package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run found out. Its JSON is documented by its fields.
type Report struct {
	Version   string            `json:"version"`   // of cove
	Python    string            `json:"python"`    // of the standard environment
	Libraries map[string]string `json:"libraries"` // of the standard environment
	Started   time.Time         `json:"started"`
	Seconds   float64           `json:"seconds"`  // that the measuring took
	Complete  bool              `json:"complete"` // false: it was stopped early
	Quick     bool              `json:"quick"`
	Machine   Machine           `json:"machine"`
	Subjects  []About           `json:"subjects"`
	Rows      []RowReport       `json:"rows"`
	Warnings  []string          `json:"warnings,omitempty"`
}

// RowReport is one figure of all subjects.
type RowReport struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Unit    string   `json:"unit"`
	Detail  string   `json:"detail"`
	Base    string   `json:"base,omitempty"` // the subject that ratios are multiples of; left out where it is cove, or its server
	Results []Result `json:"results"`
}

// Result is one figure of one subject.
type Result struct {
	Subject string    `json:"subject"`
	Title   string    `json:"-"`
	Unable  string    `json:"unable,omitempty"` // why it was not asked
	Stats   Stats     `json:"stats"`
	Success float64   `json:"success"`         // share of the samples that brought the right answer, 0 to 1
	Ratio   float64   `json:"ratio,omitempty"` // median as a multiple of that of the row's base; 0: unknown
	Samples []float64 `json:"samples"`         // in the order taken, in the row's unit
	Errors  []string  `json:"errors,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// compare sums the samples up and sets the ratios.
func (r *Report) compare() {
	for _, row := range r.Rows {
		var base float64
		for i := range row.Results {
			result := &row.Results[i]
			result.Stats = Summarize(result.Samples)
			if n := len(result.Samples) + len(result.Errors); n > 0 {
				result.Success = float64(len(result.Samples)) / float64(n)
			}
			if row.bases(result.Subject) && result.Stats.N > 0 {
				base = result.Stats.Median // no row asks both cove and its server
			}
		}
		for i := range row.Results {
			if result := &row.Results[i]; base > 0 && result.Stats.N > 0 {
				result.Ratio = result.Stats.Median / base
			}
		}
	}
}

// bases tells whether a subject is what the others of the row are compared with.
func (row RowReport) bases(subject string) bool {
	if row.Base != "" {
		return subject == row.Base
	}
	return cove(subject)
}

// own tells whether a subject is cove in any form but that of its commands.
func own(id string) bool {
	return cove(id) || slices.Contains([]string{coveLoopID, coveCodeID, coveHostID}, id)
}

// cove tells whether a subject is what the others are compared with: cove in this process, or its server in the rows about servers.
func cove(id string) bool { return id == coveID || id == coveServeID }

// CoveFailed tells whether cove was absent or a sample of cove's own brought no right answer.
func (r *Report) CoveFailed() bool {
	for _, s := range r.Subjects {
		if own(s.ID) && s.Absent != "" {
			return true
		}
	}
	for _, row := range r.Rows {
		for _, result := range row.Results {
			if own(result.Subject) && len(result.Errors) > 0 {
				return true
			}
		}
	}
	return false
}

// JSON writes the report as one document.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	r.head(&b)
	for _, row := range r.Rows {
		if row.asked() {
			row.text(&b)
		}
	}
	b.WriteString("\nMeasured against\n")
	for _, s := range r.Subjects {
		fmt.Fprintf(&b, "  %s\n", s.line())
	}
	b.WriteString("\n\"vs cove\" is a median as a multiple of cove's (of cove serve's where servers are compared): 20x took twenty times as long (or as much). \"vs\" another is a multiple of that one's.\n" +
		"p95 and p99 are by nearest rank: with fewer than 100 samples p99 is the slowest one.\n")
	for _, warning := range r.Warnings {
		b.WriteString("warning: " + warning + "\n")
	}
	if !r.Complete {
		b.WriteString("Stopped early: this is what there is.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) head(b *strings.Builder) {
	m := r.Machine
	fmt.Fprintf(b, "cove %s, %s, %.0f s\n", r.Version, r.Started.Format("2006-01-02 15:04"), r.Seconds)
	fmt.Fprintf(b, "%d cores (%s), %.1f GB of memory (%.1f GB available), %s, Linux %s\n",
		m.Cores, orUnknown(m.Processor), float64(m.Memory)/1e9, float64(m.Available)/1e9, orUnknown(m.System), m.Kernel)
	fmt.Fprintf(b, "load %.1f at the start, %.1f at the end", m.LoadStart, m.LoadEnd)
	if m.LoadStart > float64(m.Cores)/2 {
		b.WriteString(": the machine was NOT idle at the start, so trust the ratios more than the figures")
	}
	b.WriteString("\nPython " + r.Python)
	for _, name := range slices.Sorted(maps.Keys(r.Libraries)) {
		fmt.Fprintf(b, ", %s %s", name, r.Libraries[name])
	}
	b.WriteString(", the same for all; interleaved rounds after one that does not count\n")
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func (a About) line() string {
	line := a.Title
	if a.Version != "" {
		line += " (" + a.Version + ")"
	}
	if a.Note != "" {
		line += ": " + a.Note
	}
	if a.Absent != "" {
		line += ". ABSENT: " + a.Absent
	}
	return line
}

// asked is false when nothing can be said of any subject, as of more sessions than fit.
func (row RowReport) asked() bool {
	return slices.ContainsFunc(row.Results, func(r Result) bool { return len(r.Samples)+len(r.Errors) > 0 || r.Unable != "" })
}

func (row RowReport) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s, %s\n  %s\n", row.Title, row.Unit, row.Detail)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	base := "cove"
	for _, result := range row.Results {
		if result.Subject == row.Base {
			base = result.Title
		}
	}
	fmt.Fprintf(t, "\t\tn\tmedian\tp95\tp99\tok\tvs %s\t\n", base)
	width := 0
	for _, result := range row.Results {
		width = max(width, len(result.Title))
	}
	unable := map[string][]string{}
	for _, result := range row.Results {
		if result.Unable != "" {
			unable[result.Unable] = append(unable[result.Unable], result.Title)
			continue
		}
		fmt.Fprintf(t, "  %-*s\t%s\n", width, result.Title, result.cells())
	}
	_ = t.Flush() // a strings.Builder takes everything
	for _, why := range slices.Sorted(maps.Keys(unable)) {
		fmt.Fprintf(b, "  not measured: %s: %s\n", strings.Join(unable[why], ", "), why)
	}
	for _, result := range row.Results {
		if result.Note != "" {
			fmt.Fprintf(b, "  %s: %s\n", result.Title, result.Note)
		}
		if len(result.Errors) > 0 {
			fmt.Fprintf(b, "  %s failed %d times, first: %.300s\n", result.Title, len(result.Errors), result.Errors[0])
		}
	}
}

func (r Result) cells() string {
	if r.Stats.N == 0 {
		ok := "-"
		if len(r.Errors) > 0 {
			ok = "0 %"
		}
		return "\t0\t-\t-\t-\t" + ok + "\t-\t"
	}
	ratio := "-"
	if r.Ratio > 0 {
		ratio = figure(r.Ratio) + "x"
	}
	return fmt.Sprintf("\t%d\t%s\t%s\t%s\t%s %%\t%s\t", r.Stats.N, figure(r.Stats.Median), figure(r.Stats.P95), figure(r.Stats.P99),
		percent(r.Success), ratio)
}

// percent never rounds a failure away.
func percent(share float64) string {
	if share == 1 {
		return "100"
	}
	return fmt.Sprintf("%.1f", math.Floor(share*1000)/10)
}

// figure has three significant digits, and all those before the point.
func figure(v float64) string {
	digits := 2
	for limit := 10.0; limit <= 1000 && math.Abs(v) >= limit && digits > 0; limit *= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f", digits, v)
}
