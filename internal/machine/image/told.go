package image

import (
	"fmt"
	"io"
	"time"
)

// tellEvery is how often the fetching of an image says how far it is.
const tellEvery = 2 * time.Second

// Told is how this machine's user gets images: with the keys of registries in the Docker configuration, and told how far it is.
func Told(to io.Writer) Get {
	var told time.Time
	layer := 0
	return Get{
		Own: true,
		Progress: func(p Progress) {
			if now := time.Now(); now.Sub(told) >= tellEvery || p.Layer != layer {
				told, layer = now, p.Layer
				_, _ = fmt.Fprintf(to, "Unpacking %s: layer %d of %d, %.1f of %.1f MB\n", p.Reference, p.Layer, p.Layers, float64(p.Done)/1e6, float64(p.All)/1e6)
			}
		},
		Waiting: func() { _, _ = fmt.Fprintln(to, "Another cove is unpacking the image: waiting for it.") },
	}
}
