package cli

import (
	"strings"
	"testing"
	"time"
)

func TestGVisorIsDated(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	r, known := gvisorOf("v0.0.0-20260905035102-160fafc42237", now)
	if !known || r.Date != "2026-09-05" || r.Days != 85 || len(r.Advisories) != 1 || r.Advisories[0].ID != "CVE-2026-96812" {
		t.Errorf("%+v, %v", r, known)
	}
	if said := strings.Join(r.lines(), "\n"); !strings.Contains(said, "gVisor of 2026-09-05, 85 days old\nCVE-2026-96812: a device /dev/cuse in an image") || !strings.Contains(said, "; not here: no device of an image") {
		t.Errorf("it says %q", said)
	}
	if r, _ := gvisorOf("v0.0.0-20261101000000-abcdefabcdef", now); len(r.Advisories) != 0 || r.Days != 28 {
		t.Errorf("a release from after it was mended: %+v", r)
	}
	for _, version := range []string{"", "(devel)", "v1.2.3", "v0.0.0-2026", "v0.0.0-20269999000000-x"} {
		if r, known := gvisorOf(version, now); known {
			t.Errorf("%q is %+v", version, r)
		}
	}
}
