package notebook

import (
	"encoding/base64"
	"strings"

	"cove/internal/python/kernel"
)

// figures are the pictures of an execution as addresses that contain them. room is what is left for all of them.
func (c Cell) figures(room *int) []string {
	var out []string
	for _, o := range c.Outputs {
		var data kernel.Bundle
		switch {
		case o.Display != nil:
			data = o.Display.Data
		case o.Result != nil:
			data = o.Result.Data
		}
		if address := figure(data); address != "" && len(address) <= *room {
			*room -= len(address)
			out = append(out, address)
		}
	}
	return out
}

// figure is a picture of a kind that runs nothing, as an address that contains it; "" where there is none. It is decoded and written anew: what a sandbox says
// is base64 becomes part of a document.
func figure(data kernel.Bundle) string {
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		text, ok := data[kind].(string)
		if !ok {
			continue
		}
		picture, err := base64.StdEncoding.DecodeString(strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return -1
			}
			return r
		}, text))
		if err == nil && len(picture) > 0 {
			return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(picture)
		}
	}
	return ""
}
