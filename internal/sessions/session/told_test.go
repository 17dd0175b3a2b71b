package session_test

import (
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// TestModelsAreTold has a model told of a wide table and of a figure by an interpreter that imported pandas before it was saved, and a person not.
func TestModelsAreTold(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		execute(t, s, cell{req: kernel.Request{Code: "import pandas as pd\nwide = pd.DataFrame({f'column{i}': [i, 1.5] for i in range(40)})"}})
		for _, model := range []bool{true, false} {
			told := ""
			for _, ev := range execute(t, s, cell{req: kernel.Request{Code: "wide", Model: model}}).events {
				if r, ok := ev.(kernel.Result); ok {
					told = r.Told.Text
				}
			}
			charts := 0
			for _, ev := range execute(t, s, cell{req: kernel.Request{Code: "import matplotlib.pyplot as plt\nplt.plot([1, 2], label='steps')\nplt.show()", Model: model}}).events {
				if d, ok := ev.(kernel.Display); ok && strings.Contains(string(d.Told.Chart), `"label": "steps"`) {
					charts++
				}
			}
			if (charts == 1) != model {
				t.Errorf("asked for a model: %v, %d figures are told as data", model, charts)
			}
			if wanted := strings.Contains(told, "[DataFrame: 2 rows × 40 columns]") && strings.Contains(told, ",column39"); wanted != model {
				t.Errorf("asked for a model: %v, told %q", model, told)
			}
		}
	})
}
