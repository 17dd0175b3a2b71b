package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/python/deps/require"
)

type packagesLs struct {
	Verbose  bool   `short:"v" help:"List the packages of the environment too."`
	Packages string `placeholder:"SET" help:"Python environment: standard, standard-2024 or minimal (default: ${packages})."`
	JSON     bool   `name:"json" help:"Print all of it as one JSON object."`
}

// Help is the long help.
func (packagesLs) Help() string {
	return `Shows the environment, the standing packages of this project and of sessions outside of any project, and what was installed for any
session, with its size on the disk and the time of its last use.

Example:

    cove packages ls -v`
}

// overview is what `cove packages ls` shows.
type overview struct {
	Environment BaseEnvironment `json:"environment"`
	Project     Standing        `json:"project"`
	Global      Standing        `json:"global"`
	Layers      []layerRow      `json:"layers"`
}

type layerRow struct {
	Packages map[string]string `json:"packages"`
	Modules  []string          `json:"modules"`
	Size     int64             `json:"size"` // bytes on the disk
	Used     time.Time         `json:"used"`
}

func (c *packagesLs) run(ctx context.Context, p *Program) (int, error) {
	d, err := p.desk(ctx, c.Packages, false, func(*config.Config) {})
	if err != nil {
		return 0, err
	}
	o := overview{Environment: d.Environment(), Layers: []layerRow{}}
	if o.Project, err = d.Standing(false); err != nil {
		return 0, err
	}
	if o.Global, err = d.Standing(true); err != nil {
		return 0, err
	}
	layers, err := d.Layers()
	if err != nil {
		return 0, err
	}
	for _, l := range layers {
		row := layerRow{Packages: map[string]string{}, Modules: notNone(l.Modules), Size: l.Unpacked, Used: l.Used}
		for _, w := range l.Wheels {
			row.Packages[w.Name] = w.Version
		}
		o.Layers = append(o.Layers, row)
	}
	if c.JSON {
		o.Project, o.Global = o.Project.complete(), o.Global.complete()
		return 0, p.printJSON(o)
	}
	return 0, c.show(p.Out, o)
}

func (s Standing) complete() Standing {
	s.Requirements, s.Packages = notNone(s.Requirements), notNilStrings(s.Packages)
	return s
}

func (c *packagesLs) show(to io.Writer, o overview) error {
	w := newRows(to, false)
	lang.Fprintf(w, "environment\t%s, Python %s, %s\n", o.Environment.Name, o.Environment.Python, count(len(o.Environment.Packages), "package"))
	if c.Verbose {
		versions(w, o.Environment.Packages, nil)
	}
	standingRows(w, "project", o.Project, "none; `cove packages add NAME` adds some")
	standingRows(w, "elsewhere", o.Global, "none")
	var size int64
	for _, l := range o.Layers {
		size += l.Size
	}
	lang.Fprintf(w, "installed\t%s, %s\n", count(len(o.Layers), "layer"), decimalSize(size))
	if err := w.Flush(); err != nil || len(o.Layers) == 0 {
		return err
	}
	w = newRows(to, false)
	fmt.Fprintln(w)
	w.head("LAST USED", "SIZE", "PACKAGES")
	for _, l := range o.Layers {
		fmt.Fprintf(w, "%s\t%s\t%s\n", dateTime(l.Used), decimalSize(l.Size), layerText(l.Packages))
	}
	return w.Flush()
}

func standingRows(w io.Writer, what string, s Standing, none string) {
	if s.File == "" {
		fmt.Fprintf(w, "%s\t%s\n", lang.Text(what), lang.Text(none))
		return
	}
	fmt.Fprintf(w, "%s\t%s\n", lang.Text(what), oneLine(filepath.Clean(s.File)))
	asked := map[string]string{}
	for _, text := range s.Requirements {
		if r, err := require.Parse(text); err == nil {
			asked[r.Name] = text
		}
	}
	versions(w, s.Packages, asked)
}

// versions lists packages; those with a requirement of their own with it, first.
func versions(w io.Writer, packages, asked map[string]string) {
	all := maps.Clone(asked)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, packages)
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		_, first := asked[a]
		_, second := asked[b]
		if first != second {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		because := ""
		if text := asked[name]; text != "" && text != name {
			because = "\t" + oneLine(text)
		}
		fmt.Fprintf(w, "  %s\t%s%s\n", oneLine(name), cmp.Or(oneLine(packages[name]), lang.Text("not locked")), because)
	}
}

// layerText names the packages of a layer on one line.
func layerText(packages map[string]string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if len(names) == packagesShown {
			return strings.Join(names, ", ") + lang.Sprintf(" and %d more", len(packages)-len(names))
		}
		names = append(names, oneLine(name+" "+packages[name]))
	}
	return strings.Join(names, ", ")
}
