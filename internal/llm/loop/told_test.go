package loop

import (
	"strings"
	"testing"

	"cove/internal/python/kernel"
)

func TestRecordTold(t *testing.T) {
	t.Parallel()
	r := newRecord(0, false)
	r.add(kernel.Result{Data: kernel.Bundle{"text/plain": "for people"}, Told: kernel.Told{Text: "for a model"}})
	r.add(kernel.Display{Data: kernel.Bundle{"text/plain": "for both"}})
	if got := r.printed(); got != "for a model\nfor both" {
		t.Errorf("the model gets %q", got)
	}
}

// TestRecordFigures has a figure told in words to models that are not shown it, and interactive charts to all.
func TestRecordFigures(t *testing.T) {
	t.Parallel()
	told := kernel.Told{Chart: []byte(`{"title":"Sales","axes":[{"x":{"label":"month"},"parts":[{"kind":"bar","count":1,"points":[["May",3]]}]}]}`)}
	const words = "It shows:\n  title \"Sales\"\n  x: \"month\"\n  - bar: May=3"
	picture := kernel.Bundle{"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}
	interactive := kernel.Bundle{"application/vnd.plotly.v1+json": "{}"}
	for _, c := range []struct {
		sees bool
		data kernel.Bundle
		told kernel.Told
		want string
	}{
		{false, picture, told, "[figure 1 shown to the user] " + words},
		{true, picture, told, "[figure 1 shown to the user]"},
		{false, picture, kernel.Told{}, "[figure 1 shown to the user]"},
		{false, picture, kernel.Told{Chart: []byte("{")}, "[figure 1 shown to the user]"},
		{true, interactive, told, "[interactive chart shown to the user] " + words},
		{false, interactive, told, "[interactive chart shown to the user] " + words},
	} {
		r := newRecord(0, c.sees)
		r.add(kernel.Display{Data: c.data, Told: c.told})
		if got := r.printed(); got != c.want {
			t.Errorf("the model gets %q, not %q", got, c.want)
		}
		if shown := len(r.pictures) == 1; shown != (c.sees && c.data["image/png"] != nil) {
			t.Errorf("the model is shown %d pictures", len(r.pictures))
		}
	}
	r := newRecord(0, true)
	for range imagesPerCall + 1 {
		r.add(kernel.Display{Data: picture, Told: told})
	}
	if got := r.printed(); strings.Count(got, "It shows:") != 1 {
		t.Errorf("of %d figures the model gets %q", imagesPerCall+1, got)
	}
}
