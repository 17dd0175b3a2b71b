package bench

import (
	"fmt"
	"io"
)

// bound says how much a figure of cove's may be: most times another figure of the same run, so that it holds on slow machines and on busy ones.
type bound struct {
	figure, than reading
	most         float64
}

// reading is the median of a subject's samples of a measure.
type reading struct{ measure, subject string }

func (f reading) String() string { return f.subject + "'s " + f.measure }

// bounds are what `cove-bench --check` wants. They are above what was measured by half and more: they are to find what has become several times as much.
func bounds() []bound {
	beside := func(measure, own, peer string, most float64) bound {
		return bound{reading{measure, own}, reading{measure, peer}, most}
	}
	return []bound{
		beside("pool", coveID, "python3", 1),
		beside("roundtrip", coveID, "gateway", 1),
		beside("serve", coveServeID, "gateway", 1.5),
		beside("events", coveServeID, "gateway", 1.5),
		beside("create", coveServeID, "gateway", 1),
		// When each of those that do not read had the server parse and write events until the kernel's buffers were full, it took some 40 times the processor time.
		{reading{"followers-idle", coveServeID}, reading{"followers-none", coveServeID}, 15},
	}
}

// Check writes how cove's figures are beside those that they are held to, and says whether none is too high. Figures that were not measured are named, and fail nothing.
func (r *Report) Check(w io.Writer) bool {
	good := true
	for _, b := range bounds() {
		own, ok := r.median(b.figure)
		than, known := r.median(b.than)
		if !ok || !known || than == 0 {
			fmt.Fprintf(w, "check: %s beside %s: not measured\n", b.figure, b.than)
			continue
		}
		verdict := "good"
		if own > b.most*than {
			verdict, good = "TOO HIGH", false
		}
		fmt.Fprintf(w, "check: %s is %.2f times %s; it may be %.2f: %s\n", b.figure, own/than, b.than, b.most, verdict)
	}
	return good
}

func (r *Report) median(f reading) (median float64, ok bool) {
	for _, row := range r.Rows {
		for _, result := range row.Results {
			if row.ID == f.measure && result.Subject == f.subject && result.Stats.N > 0 {
				return result.Stats.Median, true
			}
		}
	}
	return 0, false
}
