package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/libdata"
)

type dataCmd struct {
	Add dataAdd `cmd:"" help:"Fetch data of a library for all sandboxes."`
	Ls  dataLs  `cmd:"" help:"List the data of libraries that sandboxes have."`
	Rm  dataRm  `cmd:"" help:"Take data of a library away."`
}

// Help is the long help.
func (dataCmd) Help() string {
	return `Some libraries download data when it is used: NLTK its corpora, spaCy its models, seaborn its example tables, transformers its models.
Sandboxes have no network, so cove fetches such data beforehand, once, from the library's own place, from a mirror, or from a folder. All
sandboxes of this machine see it read-only at /opt/cove/data, where the library looks for it.

The names are LIBRARY:NAME. The libraries are files, huggingface, nltk, seaborn, sklearn, spacy; files:NAME takes any folder, which code
finds at /opt/cove/data/files/NAME.

Examples:

    cove data add nltk:punkt_tab nltk:stopwords seaborn:tips
    cove data add spacy:en_core_web_sm==3.8.0
    cove data add huggingface:sentence-transformers/all-MiniLM-L6-v2
    cove data add nltk:popular --from /mnt/mirror/nltk_data
    cove data add sklearn:california_housing --from ~/scikit_learn_data
    cove data ls`
}

type dataAdd struct {
	Items []string    `arg:"" name:"item" help:"What to fetch, as LIBRARY:NAME; with ==VERSION after it where there are versions."`
	From  string      `placeholder:"PLACE" help:"The address of a mirror, or a folder, instead of the library's own place or data.places."`
	Most  config.Size `placeholder:"SIZE" help:"How large one item may be, unpacked (default: ${data_most})."`
	Quiet bool        `short:"q" help:"Say nothing but errors."`
	JSON  bool        `name:"json" help:"Print what was added as one JSON object an item."`
}

func (c *dataAdd) run(ctx context.Context, p *Program) (int, error) {
	s, err := p.data()
	if err != nil {
		return 0, err
	}
	most := c.Most
	if most == 0 {
		most = p.Config.Data.Most
	}
	for _, text := range c.Items {
		item, err := libdata.ParseItem(text)
		if err != nil {
			return 0, err
		}
		place, err := c.place(p, item)
		if err != nil {
			return 0, err
		}
		var live *terminal.Live
		if !c.Quiet && !c.JSON {
			live = p.live
		}
		r, err := s.Add(ctx, item, libdata.Options{Place: place, Most: int64(most), Told: func(received int64) {
			live.Progress(fmt.Sprintf("fetching %s  %s", item, humanSize(received)))
		}})
		live.Over()
		if err != nil {
			if ctx.Err() != nil {
				return exitInterrupted, problem.New(problem.GivenUp, "stopped; nothing of "+item.String()+" was kept")
			}
			return 0, err
		}
		switch {
		case c.JSON:
			if err := json.NewEncoder(p.Out).Encode(r); err != nil {
				return 0, err
			}
		case !c.Quiet:
			lang.Fprintf(p.Err, "added %s (%s, %s)\n", r.Item, humanSize(r.Size), count(len(r.Files), "file"))
		}
	}
	return 0, nil
}

// place returns where an item comes from: the flag's, the settings', or "" for the library's own.
func (c *dataAdd) place(p *Program, item libdata.Item) (string, error) {
	place := c.From
	for _, said := range p.Config.Data.Places {
		if library, at, _ := strings.Cut(said, "="); place == "" && library == item.Library {
			place = at
		}
	}
	if place == "" || strings.Contains(place, "://") {
		return place, nil
	}
	return filepath.Abs(place)
}

type dataLs struct {
	JSON bool `name:"json" help:"Print one JSON object an item, with its files and their sums."`
}

func (c *dataLs) run(_ context.Context, p *Program) (int, error) {
	s, err := p.data()
	if err != nil {
		return 0, err
	}
	all, err := s.List()
	if err != nil {
		return 0, err
	}
	if c.JSON {
		for _, r := range all {
			if err := json.NewEncoder(p.Out).Encode(r); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
	if len(all) == 0 {
		fmt.Fprintln(p.Err, lang.Text("There is no data of libraries yet; cove data add --help says what there can be."))
		return 0, nil
	}
	t := newRows(p.Out, false)
	t.head("ITEM", "SIZE", "FILES", "ADDED", "FROM")
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", r.Item, humanSize(r.Size), len(r.Files), r.Added.Local().Format("2006-01-02"), oneLine(r.Place))
	}
	return 0, t.Flush()
}

type dataRm struct {
	Items []string `arg:"" name:"item" help:"What to take away, as cove data ls names it."`
}

func (c *dataRm) run(_ context.Context, p *Program) (int, error) {
	s, err := p.data()
	if err != nil {
		return 0, err
	}
	for _, text := range c.Items {
		item, err := libdata.ParseItem(text)
		if err != nil {
			return 0, err
		}
		r, err := s.Remove(item)
		if err != nil {
			return 0, err
		}
		lang.Fprintf(p.Err, "removed %s (%s)\n", r.Item, humanSize(r.Size))
	}
	return 0, nil
}

func (p *Program) data() (*libdata.Store, error) {
	if p.ConfigErr != nil {
		return nil, p.ConfigErr
	}
	return libdata.Open(filepath.Join(p.Config.Folders.Data, libdata.Folder))
}
