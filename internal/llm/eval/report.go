package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// Report is what there is to say of a run, beside other runs over the same tasks.
type Report struct {
	Column
	Bound      string      // why not all tasks were begun; ""
	Others     []Column    // the newest first
	Thresholds []Threshold // that were asked for
	Records    []Record
}

// Column is one run of a report.
type Column struct {
	Folder  string
	Plan    Plan
	Figures Figures
}

// Threshold is the least that a share may be.
type Threshold struct {
	Name  string  `json:"name"`
	Least float64 `json:"least"`
	Share float64 `json:"share"`
	Met   bool    `json:"met"`
}

// ParseThreshold reads "right=0.8". Problems: usage.
func ParseThreshold(text string) (Threshold, error) {
	name, number, ok := strings.Cut(text, "=")
	least, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(least >= 0 && least <= 1) || !slices.Contains(ShareNames(), name) {
		return Threshold{}, problem.New(problem.Usage, fmt.Sprintf("%q is not a share and a number from 0 to 1", text)).
			WithHint("write for example right=0.8; the shares are " + strings.Join(ShareNames(), ", "))
	}
	return Threshold{Name: name, Least: least}, nil
}

// Against sets what the share is and whether it is enough. A share of nothing is not.
func (t Threshold) Against(f Figures) Threshold {
	s := f.Shares[t.Name]
	t.Share, t.Met = s.Share, s.Of > 0 && s.Share >= t.Least
	return t
}

// ReadReport reads the run in a folder. Problems: eval_folder.
func ReadReport(folder string) (Report, error) {
	plan, err := ReadPlan(folder)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = problem.New(problem.EvalFolder, "the folder "+folder+" has no run").WithHint("name the folder that a run of `cove eval` was kept in")
		}
		return Report{}, err
	}
	records, err := ReadRecords(folder, plan)
	if err != nil {
		return Report{}, err
	}
	return Report{Column: Column{folder, plan, Compute(len(plan.Tasks), records)}, Records: records}, nil
}

// mostOthers is how many other runs a report shows that nobody named.
const mostOthers = 6

// Beside adds the runs in these folders and, unless some are named, those beside the report's own folder that are over the same tasks: the newest. What of those
// beside it cannot be read is left out.
func (r *Report) Beside(folders ...string) error {
	for _, folder := range folders {
		other, err := ReadReport(folder)
		if err != nil {
			return err
		}
		r.Others = append(r.Others, other.Column)
	}
	if len(folders) > 0 {
		return nil
	}
	own, err := filepath.Abs(r.Folder)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(own))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		folder := filepath.Join(filepath.Dir(own), e.Name())
		if !e.IsDir() || folder == own {
			continue
		}
		plan, err := ReadPlan(folder)
		if err != nil || plan.Digest != r.Plan.Digest {
			continue
		}
		if records, err := ReadRecords(folder, plan); err == nil && len(records) > 0 {
			r.Others = append(r.Others, Column{folder, plan, Compute(len(plan.Tasks), records)})
		}
	}
	slices.SortFunc(r.Others, func(a, b Column) int { return b.Plan.Created.Compare(a.Plan.Created) })
	r.Others = r.Others[:min(len(r.Others), mostOthers)]
	return nil
}

// Name is what a run is called in the head of its column.
func (c Column) Name() string {
	if c.Plan.Kind == KindReferences {
		return "references"
	}
	return c.Plan.Model
}

// Day is when a run began.
func (c Column) Day() string { return c.Plan.Created.Format("2006-01-02 15:04") }

func (r Report) columns() []Column { return append([]Column{r.Column}, r.Others...) }

// labels are the shares in words.
var labels = map[string]string{
	ShareRight: "right", ShareGenerated: "generation right", ShareAnswered: "answers right", ShareInstalled: "installs right", ShareExecuted: "executions without error",
	ShareRepaired1: "repaired within 1 step", ShareRepaired2: "repaired within 2 steps", ShareRepaired3: "repaired within 3 steps",
}

// jsonColumn is a run in JSON, without the ids of its tasks.
type jsonColumn struct {
	Folder  string  `json:"folder"`
	Run     Plan    `json:"run"`
	Figures Figures `json:"figures"`
}

func (c Column) json() jsonColumn {
	c.Plan.Tasks = nil
	return jsonColumn{c.Folder, c.Plan, c.Figures}
}

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	others := []jsonColumn{}
	for _, o := range r.Others {
		others = append(others, o.json())
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{
		"folder": r.Folder, "run": r.json().Run, "figures": r.Figures, "interval": "Wilson, 95 %", "others": others, "thresholds": append([]Threshold{}, r.Thresholds...), "bound": r.Bound,
	})
}

// WriteText writes the report for a terminal.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range r.rows() {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range append(r.remarks(), r.wrong()...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// rows is the table of figures: a name, and a cell for each run.
func (r Report) rows() [][]string {
	var rows [][]string
	add := func(name string, cell func(Column) string) {
		row := []string{name}
		for _, c := range r.columns() {
			row = append(row, cell(c))
		}
		rows = append(rows, row)
	}
	add(r.Plan.Name, Column.Name)
	add("began (UTC)", Column.Day)
	add("tasks judged", func(c Column) string { return fmt.Sprintf("%d of %d", c.Figures.Judged, c.Figures.Tasks) })
	for _, name := range ShareNames() {
		add(labels[name], func(c Column) string { return c.Figures.Shares[name].String() })
		if name == ShareRight && slices.ContainsFunc(r.columns(), func(c Column) bool { return c.Figures.Alone != nil }) {
			add("  of one try alone", func(c Column) string {
				if c.Figures.Alone == nil {
					return ""
				}
				return c.Figures.Alone.String()
			})
		}
	}
	for _, name := range PartNames() {
		title := "seconds, median / p95"
		if name != PartTotal {
			title = "  of them " + name
		}
		add(title, func(c Column) string { s := c.Figures.Seconds[name]; return seconds(s.Median) + " / " + seconds(s.P95) })
	}
	add("tokens in / out", func(c Column) string {
		text := fmt.Sprintf("%d / %d", c.Figures.Tokens.Input, c.Figures.Tokens.Output)
		if c.Figures.Tokens.Estimated {
			text += ", partly estimated"
		}
		return text
	})
	add("cost", func(c Column) string { return c.Figures.Cost.String() })
	return rows
}

// remarks are the lines below the table.
func (r Report) remarks() []string {
	lines := []string{"Intervals: Wilson, 95 %. Times depend on the machine, and on how many tasks ran at once."}
	if n := r.Figures.Unjudged; n > 0 {
		lines = append(lines, fmt.Sprintf("%d tasks could not be judged, because cove or the model's service failed; the same command with --run goes on with them.", n))
	}
	if n := r.Figures.Tasks - r.Figures.Judged - r.Figures.Unjudged; n > 0 {
		lines = append(lines, fmt.Sprintf("%d tasks are not done.", n))
	}
	if n := r.Figures.Limited; n > 0 {
		lines = append(lines, fmt.Sprintf("%d answers were ended by a limit of steps, tokens, time or length, and judged as they were.", n))
	}
	if r.Bound != "" {
		lines = append(lines, "Stopped: "+r.Bound+".")
	}
	for _, t := range r.Thresholds {
		word := "met"
		if !t.Met {
			word = "NOT MET"
		}
		lines = append(lines, fmt.Sprintf("%s: %s >= %g: %.4f", word, t.Name, t.Least, t.Share))
	}
	return lines
}

// Bounds of what a text names of wrong tasks.
const (
	mostWrong    = 20
	longestCause = 160 // characters
)

// wrong are lines with the tasks that are not right, and why.
func (r Report) wrong() (lines []string) {
	n := 0
	for _, record := range r.Records {
		if !record.Judged || record.Right {
			continue
		}
		if n++; n <= mostWrong {
			lines = append(lines, "wrong: "+record.Task+": "+record.cause())
		}
	}
	if n > mostWrong {
		lines = append(lines, fmt.Sprintf("%d more are wrong; %s in the folder of the run has all.", n-mostWrong, ReportPage))
	}
	return lines
}

// cause is in a line why a task is not right.
func (r Record) cause() string {
	text := "its answer is " + strconv.Quote(r.Answer)
	if r.Failure != nil {
		text = r.Failure.Message
	} else if at := slices.IndexFunc(r.Checks, func(c CheckResult) bool { return !c.Right }); at >= 0 && r.Checks[at].Why != "" {
		text = r.Checks[at].Why
	}
	if lines := strings.Split(strings.TrimSpace(text), "\n"); strings.HasPrefix(lines[0], "Traceback") {
		text = lines[len(lines)-1] // the exception
	}
	text = strings.Join(strings.Fields(text), " ")
	if whole := []rune(text); len(whole) > longestCause {
		text = string(whole[:longestCause]) + "…"
	}
	return text
}

// String is the share as reports show it.
func (s Share) String() string {
	if s.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)  %d/%d", 100*s.Share, 100*s.Low, 100*s.High, s.Right, s.Of)
}

// String is the cost as reports show it.
func (c Cost) String() string {
	if c.Currency == "" {
		return "not known"
	}
	return strconv.FormatFloat(c.Amount, 'f', 4, 64) + " " + c.Currency
}

func seconds(s float64) string {
	switch {
	case s >= 100:
		return strconv.FormatFloat(s, 'f', 0, 64)
	case s >= 1:
		return strconv.FormatFloat(s, 'f', 1, 64)
	}
	return strconv.FormatFloat(s, 'f', 3, 64)
}

// replaceWith puts into place what write writes.
func replaceWith(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return durable.Replace(path, 0o644, &text)
}

// Save writes the reports into the run's folder.
func (r Report) Save() error {
	for name, write := range map[string]func(io.Writer) error{ReportText: r.WriteText, ReportJSON: r.WriteJSON, ReportPage: r.WriteHTML} {
		if err := replaceWith(filepath.Join(r.Folder, name), write); err != nil {
			return unusable(r.Folder, err)
		}
	}
	return nil
}
