// Command generate makes the table of the package names from public evidence: see the README beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

type options struct {
	public string        // a folder of downloaded public tables
	cache  string        // where the evidence file and fetched packages are kept
	out    string        // the data folder of the package names
	wheels string        // a folder of wheels, or ""
	site   string        // an installed site-packages, or ""
	top    int           // of how many projects the index is asked for the list of files
	index  string        // a PEP 503/691 index, or "" for pip's
	fetch  bool          // whether packages with tables are downloaded
	pace   time.Duration // between two requests to the index
}

func main() {
	var o options
	cache, _ := os.UserCacheDir()
	flag.StringVar(&o.public, "public", os.Getenv("COVE_NAMES_PUBLIC"), "folder with the public tables (or $COVE_NAMES_PUBLIC)")
	flag.StringVar(&o.cache, "cache", filepath.Join(cache, "cove", "names"), "folder for evidence and downloads; a run that was stopped goes on from there")
	flag.StringVar(&o.out, "out", "internal/python/deps/names/data", "folder to write the table to")
	flag.StringVar(&o.wheels, "wheels", "", "folder of wheels to read as well")
	flag.StringVar(&o.site, "site", "", "site-packages folder to read as well")
	flag.IntVar(&o.top, "top", 0, "read the wheels' lists of files of that many top projects from the index")
	flag.StringVar(&o.index, "index", "", "URL of the index (default: the one that pip uses)")
	flag.BoolVar(&o.fetch, "fetch", true, "download the packages that hold public tables")
	flag.DurationVar(&o.pace, "pace", pace, "time between two requests to the index")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.public == "" {
		return errors.New("name the folder of the public tables with -public or COVE_NAMES_PUBLIC; README.md says what belongs into it")
	}
	p, err := readProjects(filepath.Join(o.public, "top-pypi-packages.json"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.cache, 0o755); err != nil {
		return err
	}
	c := newClaims(p)
	if o.fetch {
		if err := fetchPackages(ctx, o.cache); err != nil {
			return err
		}
	}
	if err := readPublic(o, c); err != nil {
		return err
	}
	if err := readOwnLists(ctx, o, c); err != nil {
		return err
	}
	modules := table(c)
	fmt.Printf("%d projects (list of %s), %d modules\n", len(p.order), p.updated, len(modules))
	if err := writeTable(o.out, modules); err != nil {
		return err
	}
	if err := writeStdlib(o); err != nil {
		return err
	}
	return writeProjects(o.out, p)
}

// readPublic reads every public table that is there; each but the list of projects may be absent.
func readPublic(o options, c *claims) error {
	tables := []struct {
		name string
		read func(string, *claims) error
	}{
		{filepath.Join(o.cache, "pigar", ".db.sqlite3"), readPigar},
		{filepath.Join(o.cache, "depfinder", "pkg_data", "name_mapping.yml"), readConda},
		{filepath.Join(o.public, "upm-pkgs-2024-01-29.json"), readUPM},
		{filepath.Join(o.public, "pipreqs-mapping.txt"), readPairs(fromPipreqs, ":", false)},
		{filepath.Join(o.public, "typeshed-stubs.tsv"), readPairs(fromTypeshed, "\t", true)},
	}
	for _, t := range tables {
		if err := t.read(t.name, c); errors.Is(err, fs.ErrNotExist) {
			fmt.Printf("without %s, which is not there\n", filepath.Base(t.name))
		} else if err != nil {
			return err
		}
	}
	return nil
}
