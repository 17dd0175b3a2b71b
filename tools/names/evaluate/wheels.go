package main

import (
	"fmt"
	"os"
	"sort"

	"cove/tools/names/wheelfiles"
)

// fromWheels takes the truth from the distributions' own lists of files: wheels, unpacked ones and installed ones below a folder.
func fromWheels(folder string, shared func(string) bool) ([]truth, error) {
	lists, err := wheelfiles.Folder(folder, func(name string, err error) {
		fmt.Fprintf(os.Stderr, "%s is left out: %v\n", name, err)
	})
	var out []truth
	for dist, files := range lists {
		out = append(out, truth{dist: dist, modules: wheelfiles.Modules(files, shared)})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].dist < out[j].dist })
	return out, err
}
