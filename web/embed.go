// Package web has the built page as files. What is in dist is made from the sources beside it by `npm run build`, and committed.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Dist returns the built page: index.html, and what it needs.
func Dist() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return files
}
