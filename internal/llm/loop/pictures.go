package loop

import (
	"bytes"
	"context"
	"image"
	"image/color"
	_ "image/gif" // decodes the first picture
	"image/jpeg"
	"image/png"
	"slices"
	"strings"

	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// Bounds of the user's image files that a model is shown. What is larger is made smaller: models are paid for by the point, and see no more in a larger one.
const (
	picturesShown = 4        // of the new files of one turn
	pictureFile   = 10 << 20 // bytes of a file that is read
	pictureSide   = 1568     // points of the longer side, as which Anthropic's models see at most (their documentation of vision)
	picturePoints = 50_000_000
	pictureBytes  = 1 << 20 // of an image that is shown as it is
)

func isPicture(name string) bool {
	switch extension(name) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}

// pictures returns the new image files for a model that sees, but those that the input holds itself, and a line that names them.
func (t *turn) pictures(ctx context.Context, files []kernel.File) ([]model.Content, error) {
	if !t.sees() {
		return nil, nil
	}
	var shown []model.Content
	var names []string
	for _, f := range files {
		if !isPicture(f.Path) || f.Size == 0 || f.Size > pictureFile || len(names) == picturesShown {
			continue
		}
		data, err := t.session.ReadFile(ctx, f.Path, pictureFile)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil || t.given(data) {
			continue
		}
		if picture, ok := smaller(data); ok {
			shown, names = append(shown, picture), append(names, fileName(f.Path))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return append([]model.Content{model.Text{Text: "You see these files: " + strings.Join(names, ", ")}}, shown...), nil
}

// given says whether the input has an image itself, as requests do whose images are in the workspace too.
func (t *turn) given(data []byte) bool {
	for _, m := range t.spec.Input {
		if slices.ContainsFunc(m.Content, func(c model.Content) bool {
			i, ok := c.(model.Image)
			return ok && bytes.Equal(i.Data, data)
		}) {
			return true
		}
	}
	return false
}

// smaller returns an image with at most pictureSide points on a side, and whether it is one that models take. The data is hostile.
func smaller(data []byte) (model.Image, bool) {
	if bytes.HasPrefix(data, []byte("RIFF")) && len(data) > 12 && string(data[8:12]) == "WEBP" {
		return model.Image{MIME: "image/webp", Data: data}, len(data) <= pictureBytes
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width < 1 || c.Height < 1 || c.Width > picturePoints/c.Height {
		return model.Image{}, false
	}
	whole, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return model.Image{}, false // providers refuse the whole request for it
	}
	by := (max(c.Width, c.Height) + pictureSide - 1) / pictureSide
	if by == 1 && len(data) <= pictureBytes {
		return model.Image{MIME: "image/" + format, Data: data}, true
	}
	part := reduced(whole, by)
	var out bytes.Buffer
	if format == "png" && png.Encode(&out, part) == nil && out.Len() <= pictureBytes {
		return model.Image{MIME: "image/png", Data: out.Bytes()}, true
	}
	out.Reset()
	if err := jpeg.Encode(&out, part, &jpeg.Options{Quality: 85}); err != nil || out.Len() > imageLimit {
		return model.Image{}, false
	}
	return model.Image{MIME: "image/jpeg", Data: out.Bytes()}, true
}

// reduced returns a picture with one point for each square of by times by, their mean.
func reduced(whole image.Image, by int) *image.RGBA {
	b := whole.Bounds()
	part := image.NewRGBA(image.Rect(0, 0, max(b.Dx()/by, 1), max(b.Dy()/by, 1)))
	count := uint32(by * by)
	for y := range part.Rect.Dy() {
		for x := range part.Rect.Dx() {
			var sum [4]uint32
			for n := range by * by {
				r, g, b, a := whole.At(b.Min.X+x*by+n%by, b.Min.Y+y*by+n/by).RGBA()
				sum[0], sum[1], sum[2], sum[3] = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8, sum[3]+a>>8
			}
			part.SetRGBA(x, y, color.RGBA{R: uint8(sum[0] / count), G: uint8(sum[1] / count), B: uint8(sum[2] / count), A: uint8(sum[3] / count)})
		}
	}
	return part
}
