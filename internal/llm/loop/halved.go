package loop

import (
	"bytes"
	"encoding/json"
	"image/png"
)

// halvedLimit bounds the picture that is decoded, in points; kernels draw no larger ones with twice the points.
const halvedLimit = 16_000_000

// halved returns a picture in the size that it is to be shown at, when that is half of its own. Models are paid for by the point, and see no more in
// the larger one. What is not such a picture stays as it is.
func halved(content []byte, metadata json.RawMessage) []byte {
	var shown struct{ Width, Height int }
	c, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil || json.Unmarshal(metadata, &shown) != nil || c.Width < 2 || c.Height < 2 || c.Width > halvedLimit/c.Height || shown.Width != c.Width/2 || shown.Height != c.Height/2 {
		return content
	}
	whole, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return content
	}
	var out bytes.Buffer
	if png.Encode(&out, reduced(whole, 2)) != nil {
		return content
	}
	return out.Bytes()
}
