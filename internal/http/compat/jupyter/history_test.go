package jupyter_test

import (
	"fmt"
	"slices"
	"testing"

	"cove/internal/server/hub"
)

// TestHistory asks for inputs of before in each way that the protocol has.
func TestHistory(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var past []hub.Execution
	for i := range 250 { // more than a page of the hub's
		code := fmt.Sprintf("line %d", i+1)
		if i%100 == 9 {
			code = "a.b(*c)\nagain"
		}
		past = append(past, hub.Execution{Code: code})
	}
	slices.Reverse(past)
	g.past = past
	s := g.dial(g.kernel(), "one")
	for _, c := range []struct{ asked, want string }{
		{`"hist_access_type":"tail","n":2`, "249 line 249|250 line 250"},
		{`"hist_access_type":"range","session":0,"start":9,"stop":12`, "9 line 9|10 a.b(*c)\nagain|11 line 11"},
		{`"hist_access_type":"range","session":1,"start":-2`, "249 line 249|250 line 250"},
		{`"hist_access_type":"range","session":1,"start":-3,"stop":-1`, "248 line 248|249 line 249"},
		{`"hist_access_type":"range","start":900,"stop":-900`, ""},
		{`"hist_access_type":"range","start":5,"stop":2`, ""},
		{`"hist_access_type":"range","session":-1,"start":1`, ""},
		{`"hist_access_type":"search","pattern":"a.b(*c)?*","n":2`, "110 a.b(*c)\nagain|210 a.b(*c)\nagain"},
		{`"hist_access_type":"search","pattern":"*aga*","unique":true`, "210 a.b(*c)\nagain"},
		{`"hist_access_type":"search","pattern":"line 24?"`, "240 line 240|241 line 241|242 line 242|243 line 243|244 line 244|245 line 245|246 line 246|247 line 247|248 line 248|249 line 249"},
		{`"hist_access_type":"search","pattern":"line"`, ""},
		{`"hist_access_type":"search","n":1`, "250 line 250"},
	} {
		got := ""
		found, _ := s.next(s.send("shell", "history_request", "{"+c.asked+"}"), "history_reply").Content["history"].([]any)
		for i, one := range found {
			if i > 0 {
				got += "|"
			}
			got += fmt.Sprintf("%v %v", one.([]any)[1], one.([]any)[2])
		}
		if got != c.want {
			t.Errorf("%s is %q and not %q", c.asked, got, c.want)
		}
	}
}
