package api

import (
	"strings"
	"testing"
	"time"

	"cove/internal/server/hub"
)

// TestOwnCharts wants each chart once, as it was drawn last, after its turn, and nothing of code that only looks like one.
func TestOwnCharts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ran := func(minute int, code string) hub.Execution {
		return hub.Execution{ID: code, Code: code, Created: at.Add(time.Duration(minute) * time.Minute)}
	}
	step := ran(9, chartMark+`{"id":"step"}`+"\nx")
	step.Turn = "trn_1"
	var found []ownChart
	for _, e := range []hub.Execution{
		ran(1, chartMark+`{"id":"a","after":"trn_1"}`+"\nfirst"),
		ran(2, chartMark+`{"id":"b","after":"trn_gone"}`+"\nelsewhere"),
		ran(3, chartMark+`{"id":"a","after":"trn_1"}`+"\nsecond"),
		ran(4, chartMark+`{"id":"c"}`+"\nwithout a turn"),
		ran(5, chartMark+`{"id":"d","after":"trn_1"}`+"\nto go"),
		ran(6, chartMark+`{"id":"d","after":"trn_1","removed":true}`+"\npass"),
		ran(7, chartMark+`{"id":`+"\nbroken"), ran(7, chartMark+`{"id":"e"}`), ran(7, chartMark+`{}`+"\nno id"), ran(7, "1 + 1"),
		ran(8, chartMark+`{"id":"f","x":"`+strings.Repeat("x", longestChartMark)+"\"}\nlong"), step,
	} {
		if c, is := readOwnChart(e); is {
			found = append(found, c)
		}
	}
	branch := []hub.Turn{{ID: "trn_copy", Created: at, Origin: &hub.TurnOrigin{Turn: "trn_1"}}, {ID: "trn_2", Created: at.Add(time.Hour)}}
	var got []string
	for _, c := range newestCharts(found) {
		_, code, _ := strings.Cut(c.execution.Code, "\n")
		got = append(got, map[int]string{-1: "nowhere", 0: "first", 1: "last"}[c.standsAfter(branch)]+": "+code)
	}
	if want := "first: second; nowhere: elsewhere; first: without a turn"; strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", strings.Join(got, "; "), want)
	}
}
