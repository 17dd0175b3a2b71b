package byterange_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cove/internal/http/byterange"
)

func TestAtMostOneRange(t *testing.T) {
	t.Parallel()
	const file, etag = "0123456789", `"a"`
	for _, c := range []struct {
		asked  []string
		of     string // If-Range
		status int
		body   string
	}{
		{nil, "", 200, file},
		{[]string{"bytes=2-4"}, "", 206, "234"},
		{[]string{"bytes=2-4"}, etag, 206, "234"},
		{[]string{"bytes=2-4"}, `"b"`, 200, file},
		{[]string{"bytes=8-"}, "", 206, "89"},
		{[]string{"bytes=-3"}, "", 206, "789"},
		{[]string{"bytes=-99"}, "", 206, file},
		{[]string{"bytes=5-9223372036854775807"}, "", 206, "56789"},
		{[]string{"bytes=0-1,3-4"}, "", 200, file},
		{[]string{"bytes=0-1", "bytes=3-4"}, "", 200, file},
		{[]string{"bytes=-0"}, "", 416, ""},
		{[]string{"bytes=-000"}, "", 416, ""},
		{[]string{"bytes=10-"}, "", 416, ""},
		{[]string{"bytes=no"}, "", 416, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Range"] = c.asked
		if c.of != "" {
			r.Header.Set("If-Range", c.of)
		}
		r = byterange.One(r, etag)
		w := httptest.NewRecorder()
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(file))
		if w.Code != c.status || c.status != 416 && w.Body.String() != c.body {
			t.Errorf("%q: %d %q", c.asked, w.Code, w.Body)
		}
		if from, to := byterange.Of(r, int64(len(file))); c.status != 416 && file[from:to] != c.body {
			t.Errorf("%q: from %d to %d", c.asked, from, to)
		} else if c.status == 416 && c.asked[0] != "bytes=no" && from != to {
			t.Errorf("%q: from %d to %d is not nothing", c.asked, from, to)
		}
	}
}
