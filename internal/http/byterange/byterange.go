// Package byterange makes requests for parts of files fit for http.ServeContent: one part, which may also be none.
package byterange

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var single = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^bytes=(?:(\d+)-(\d*)|-(\d+))$`) })

// One returns a request that asks for at most one range of the file with that etag; "" leaves If-Range to http.ServeContent. Several ranges would be read by
// a goroutine that outlasts the handler, and each is a read of its own where the file comes from; so would be one that is for another version of the
// file. A server may pass over them (RFC 9110, 14.2). One that is none is left to http.ServeContent, which refuses it.
func One(r *http.Request, etag string) *http.Request {
	asked := r.Header.Get("Range")
	other := etag != "" && r.Header.Get("If-Range") != "" && r.Header.Get("If-Range") != etag
	if other || strings.Contains(asked, ",") || len(r.Header["Range"]) > 1 {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	} else if m := single().FindStringSubmatch(asked); m != nil && m[3] != "" && strings.Trim(m[3], "0") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", math.MaxInt64)) // of the last 0 bytes there are none, which http.ServeContent does not refuse
	}
	return r
}

// Of returns where in a file of that size the range is that a request of One's asks for: all of it where there is none.
func Of(r *http.Request, size int64) (from, to int64) {
	m := single().FindStringSubmatch(r.Header.Get("Range"))
	if m == nil {
		return 0, size
	}
	number := func(text string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	if m[3] != "" {
		return max(0, size-number(m[3], size)), size
	}
	last := number(m[2], size)
	return min(number(m[1], size), size), min(size, max(last, last+1))
}
