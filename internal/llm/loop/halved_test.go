package loop

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func TestHalved(t *testing.T) {
	whole := image.NewNRGBA(image.Rect(0, 0, 5, 4))
	for y := range 4 {
		for x := range 5 {
			whole.Set(x, y, color.NRGBA{R: uint8(100 * (x % 2)), A: 255})
		}
	}
	var content bytes.Buffer
	if err := png.Encode(&content, whole); err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(halved(content.Bytes(), json.RawMessage(`{"width": 2, "height": 2}`))))
	if err != nil || got.Bounds() != image.Rect(0, 0, 2, 2) {
		t.Fatalf("got %v, %v", got, err)
	}
	if r, _, _, a := got.At(1, 1).RGBA(); r>>8 != 50 || a>>8 != 255 {
		t.Errorf("the points are not the mean of those before: %d, %d", r>>8, a>>8)
	}
	for _, same := range []struct {
		content  []byte
		metadata string
	}{
		{content.Bytes(), `{"width": 5, "height": 4}`}, {content.Bytes(), `null`}, {content.Bytes(), `{"width": "2"`}, {content.Bytes(), `[]`},
		{[]byte("no picture"), `{"width": 0, "height": 0}`}, {content.Bytes()[:content.Len()/2], `{"width": 2, "height": 2}`},
	} {
		if got := halved(same.content, json.RawMessage(same.metadata)); !bytes.Equal(got, same.content) {
			t.Errorf("%s changed a picture that is not drawn twice as large", same.metadata)
		}
	}
}
