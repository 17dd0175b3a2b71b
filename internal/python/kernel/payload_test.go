package kernel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cove/internal/python/kernel"
)

// TestPages has pages of the pager printed, or told to clients that take them.
func TestPages(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	if printed, _ := shownBy(t, k, kernel.Cell, "zip?"); !strings.Contains(printed, "zip(") {
		t.Errorf("%q is printed", printed)
	}
	for code, want := range map[string]string{"zip?": "page", "get_ipython().set_next_input('z')": "set_next_input"} {
		var told []string
		for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code, Payloads: true}) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := ev.(type) {
			case kernel.Stream:
				t.Errorf("%s prints %s", code, e.Data)
			case kernel.Display:
				var p struct{ Source string }
				raw, _ := e.Data[kernel.MIMEPayload].(json.RawMessage)
				if err := json.Unmarshal(raw, &p); err != nil || e.Data["text/plain"] == "" {
					t.Errorf("%s: %v %v", code, err, e.Data)
				}
				told = append(told, p.Source)
			}
		}
		if strings.Join(told, " ") != want {
			t.Errorf("%s tells %q", code, told)
		}
	}
}
