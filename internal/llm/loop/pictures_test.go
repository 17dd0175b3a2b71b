package loop_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
)

func noise(width, height int) *image.RGBA {
	i := image.NewRGBA(image.Rect(0, 0, width, height))
	for n := range i.Pix {
		i.Pix[n] = byte(rand.Uint32())
	}
	return i
}

// imagesOf returns the images of a request, as type and size.
func imagesOf(t *testing.T, req model.Request) (found []string) {
	t.Helper()
	for _, m := range req.Messages {
		for _, c := range m.Content {
			i, ok := c.(model.Image)
			if !ok {
				continue
			}
			c, _, err := image.DecodeConfig(bytes.NewReader(i.Data))
			if err != nil {
				t.Errorf("the model is shown what is no image: %v", err)
			}
			found = append(found, fmt.Sprintf("%s %dx%d", i.MIME, c.Width, c.Height))
		}
	}
	return found
}

// TestImageFilesAreShown has a model that sees shown the user's image files, once, made smaller where they are large, and one that does not told that they are there.
func TestImageFilesAreShown(t *testing.T) {
	t.Parallel()
	var small, large, photo bytes.Buffer
	for _, err := range []error{png.Encode(&small, noise(40, 30)), png.Encode(&large, image.NewGray(image.Rect(0, 0, 4000, 1000))), jpeg.Encode(&photo, noise(1800, 1200), nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files := map[string][]byte{
		"a.png": small.Bytes(), "b.PNG": large.Bytes(), "c.jpg": photo.Bytes(), "bad.png": []byte("no image"), "cut.png": small.Bytes()[:60], "empty.jpg": nil, "notes.txt": []byte("x"),
		"bomb.png": append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\x00\x00\x00"), make([]byte, 100)...),
	}
	want := []string{"image/png 40x30", "image/png 1333x333", "image/jpeg 900x600"}
	for _, sees := range []bool{true, false} {
		can := tools()
		can.Images = sees
		m := &scripted{t: t, can: can, script: []says{text("Ok."), text("Again.")}}
		c := newConversation(m, &session{files: files}, loop.DefaultLimits())
		ask(t, c, "What is in the pictures?")
		ask(t, c, "And now?")
		for n, req := range m.requests {
			got := imagesOf(t, req)
			slices.Sort(got)
			slices.Sort(want)
			if sees && !slices.Equal(got, want) || !sees && len(got) > 0 {
				t.Errorf("request %d to a model that sees (%v) has the images %v", n, sees, got)
			}
		}
		if words := m.lastTexts(0); strings.Contains(words, "You see these files: a.png, b.PNG, c.jpg") != sees || !strings.Contains(words, "- a.png (") {
			t.Errorf("a model that sees (%v) is told %q", sees, words)
		}
	}
}
