package api_test

import (
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/api"
)

func TestPiecesOfUploads(t *testing.T) {
	t.Parallel()
	path := api.Prefix + "/uploads/" + upload
	for name, c := range map[string]struct {
		headers []string
		body    string
		fail    error
		status  int
		want    string // in the body
		offset  string // in the header
	}{
		"the next one":        {[]string{"Upload-Offset: 4"}, "45", nil, 200, `"offset":6,`, "6"},
		"the last one":        {[]string{"Upload-Offset: 4"}, "456789", nil, 200, `"file":{"id":"` + stored, "10"},
		"without an offset":   {nil, "01", nil, 409, `"code":"upload_offset"`, "4"},
		"of another place":    {[]string{"Upload-Offset: 9"}, "9", nil, 409, `number 4`, "4"},
		"below the beginning": {[]string{"Upload-Offset: -1"}, "9", nil, 422, `Upload-Offset`, ""},
		"no number":           {[]string{"Upload-Offset: all"}, "9", nil, 422, `Upload-Offset`, ""},
		"in use":              {[]string{"Upload-Offset: 4"}, "45", problem.New(problem.UploadInUse, "another"), 409, `upload_in_use`, "6"},
		"on another server":   {[]string{"Upload-Offset: 4"}, "45", problem.New(problem.UploadElsewhere, "there"), 503, `upload_elsewhere`, "6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.hub.fail = c.fail
			got := w.do(t, "PATCH", path, c.body, c.headers...)
			if got.status != c.status || !strings.Contains(got.body, c.want) || got.header.Get("Upload-Offset") != c.offset {
				t.Errorf("%d %q %s", got.status, got.header.Get("Upload-Offset"), got.body)
			}
		})
	}
	w := newWorld(t, nil)
	for _, body := range []string{`{}`, `{"name":"","size":1}`, `{"name":"a"}`, `{"name":"a","size":-1}`, `{"name":"a","size":1.5}`} {
		wantProblem(t, w.do(t, "POST", api.Prefix+"/uploads", body), 422, "invalid_request")
	}
	if got := w.do(t, "POST", api.Prefix+"/uploads", `{"name":"a","size":0}`); got.status != 201 {
		t.Errorf("an empty file: %d %s", got.status, got.body)
	}
}
