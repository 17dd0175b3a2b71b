package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/python/deps/names"
	"cove/tools/names/wheelfiles"
)

// readOwnLists adds what distributions' own lists of files say: those of the index, of a folder of wheels and of an installed site-packages.
func readOwnLists(ctx context.Context, o options, c *claims) error {
	for _, folder := range []string{o.wheels, o.site} {
		if folder == "" {
			continue
		}
		lists, err := wheelfiles.Folder(folder, func(name string, err error) {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", name, err)
		})
		if err != nil {
			return err
		}
		for dist, files := range lists {
			c.addAll(dist, wheelfiles.Modules(files, shared))
		}
	}
	found, err := openEvidence(filepath.Join(o.cache, "evidence.jsonl"))
	if err != nil {
		return err
	}
	defer func() { _ = found.close() }()
	if o.top > 0 {
		if err := ask(ctx, o, c.projects.order[:min(o.top, len(c.projects.order))], found); err != nil {
			return fmt.Errorf("%w (what was found so far is kept; the next run goes on from there)", err)
		}
	}
	for _, e := range found.entries {
		c.addAll(e.Project, e.Modules)
	}
	return nil
}

func shared(dotted string) bool {
	is, _ := names.Namespace(dotted)
	return is
}

func (c *claims) addAll(dist string, modules []string) {
	for _, m := range modules {
		c.add(fromWheel, dist, m)
		// What one distribution alone spreads over a folder without __init__.py is found by the folder's name as well.
		if root, _, dotted := strings.Cut(m, "."); dotted && !shared(root) {
			c.add(fromWheel, dist, root)
		}
	}
}
