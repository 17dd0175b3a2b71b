package interpreter

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
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
	half := image.NewRGBA(image.Rect(0, 0, shown.Width, shown.Height))
	for y := range shown.Height {
		for x := range shown.Width {
			var sum [4]uint32
			for _, at := range [4]image.Point{{X: 2 * x, Y: 2 * y}, {X: 2*x + 1, Y: 2 * y}, {X: 2 * x, Y: 2*y + 1}, {X: 2*x + 1, Y: 2*y + 1}} {
				r, g, b, a := whole.At(at.X, at.Y).RGBA()
				sum[0], sum[1], sum[2], sum[3] = sum[0]+r, sum[1]+g, sum[2]+b, sum[3]+a
			}
			half.SetRGBA(x, y, color.RGBA{R: uint8(sum[0] >> 10), G: uint8(sum[1] >> 10), B: uint8(sum[2] >> 10), A: uint8(sum[3] >> 10)})
		}
	}
	var out bytes.Buffer
	if png.Encode(&out, half) != nil {
		return content
	}
	return out.Bytes()
}
