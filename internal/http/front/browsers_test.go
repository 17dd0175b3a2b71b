package front_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"cove/internal/http/front"
	"cove/internal/server/auth"
)

const annsCookie = "cove_80=browser-of-" + anns

func TestACookieCountsForTheNativeAPIAlone(t *testing.T) {
	t.Parallel()
	g := withPage(t)
	w := g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", annsCookie)
	want(t, "the native API", w, 200)
	var who auth.Principal
	must(t, json.Unmarshal(w.Body.Bytes(), &who))
	if who.User != "usr_ann" || who.Browser == "" || who.Key != "" || who.IP != "192.0.2.1" {
		t.Errorf("the caller is %+v", who)
	}
	if w.Header().Get("Set-Cookie") != "" {
		t.Error("a cookie that is good is set again")
	}
	want(t, "a change", g.send(t, "POST", "/api/v1/things", "", "x", "Cookie", annsCookie), 200)
	want(t, "the documentation", g.ask(t, "GET", "/api/v1/docs", "", "Cookie", annsCookie), 200)
	for _, path := range []string{"/v1/things/1", "/v1/health", "/metrics", "/", "/debug/pprof/", "/nothing.txt"} {
		w := g.ask(t, "GET", path, "", "Cookie", annsCookie)
		want(t, path, w, 401)
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s takes the cookie away", path)
		}
	}
	want(t, "a key beside it", g.ask(t, "GET", "/api/v1/things/1", "wrong", "Cookie", annsCookie), 401)
	want(t, "a password beside it", g.ask(t, "GET", "/api/v1/things/1", "", "Authorization", "Basic x", "Cookie", annsCookie), 401)
	w = g.ask(t, "GET", "/api/v1/things/1", bobs, "Cookie", annsCookie)
	must(t, json.Unmarshal(w.Body.Bytes(), &who))
	if who.User != "usr_bob" {
		t.Errorf("with a key beside the cookie the caller is %+v", who)
	}
}

// TestPagesOfOthersCannotUseTheCookie: neither to write nor to read, nor those that the operator lets call with a key.
func TestPagesOfOthersCannotUseTheCookie(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Origins: []string{"https://app.example.com"}}, nil)
	for name, headers := range map[string][]string{
		"another site":                  {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		"another port of this machine":  {"Sec-Fetch-Site", "same-site", "Origin", "http://example.com:3000"},
		"a frame of no origin":          {"Sec-Fetch-Site", "cross-site", "Origin", "null"},
		"an allowed page":               {"Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.com"},
		"an old browser, another page":  {"Origin", "https://evil.example"},
		"an old browser, no origin":     {"Origin", "null"},
		"an old browser, allowed page":  {"Origin", "https://app.example.com"},
		"something that is not a value": {"Sec-Fetch-Site", "same-origin, cross-site"},
	} {
		for _, method := range []string{"GET", "POST"} {
			path := map[string]string{"GET": "/api/v1/things/1", "POST": "/api/v1/things"}[method]
			w := g.send(t, method, path, "", "x", append(headers, "Cookie", annsCookie)...)
			want(t, name+", "+method, w, 403)
			if codeOf(t, w) != "cross_origin" || w.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s: %s, %q", name, w.Body, w.Header().Get("Set-Cookie"))
			}
		}
	}
	for name, headers := range map[string][]string{
		"its own page":   {"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"},
		"the user":       {"Sec-Fetch-Site", "none"},
		"an old browser": {"Origin", "http://example.com"},
		"a program":      {},
	} {
		want(t, name, g.send(t, "POST", "/api/v1/things", "", "x", append(headers, "Cookie", annsCookie)...), 200)
		want(t, name, g.ask(t, "GET", "/api/v1/things/1", "", append(headers, "Cookie", annsCookie)...), 200)
	}
	want(t, "an allowed page with a key", g.send(t, "POST", "/api/v1/things", anns, "x", "Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.com", "Cookie", annsCookie), 200)
}

func TestBadCookies(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	for name, cookie := range map[string]string{
		"unknown":       "cove_80=browser-of-nobody",
		"empty":         "cove_80=",
		"huge":          "cove_80=" + strings.Repeat("x", 500_000),
		"two different": annsCookie + "; cove_80=browser-of-" + bobs,
		"one is bad":    "cove_80=; " + annsCookie,
		"a key's text":  "cove_80=" + anns,
	} {
		w := g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", cookie)
		want(t, name, w, 401)
		if codeOf(t, w) != "unauthenticated" || !strings.HasPrefix(w.Header().Get("Set-Cookie"), "cove_80=; Path=/; Max-Age=0") {
			t.Errorf("%s: %s, %q", name, w.Body, w.Header().Get("Set-Cookie"))
		}
	}
	for name, cookie := range map[string]string{
		"another name":   "cove=browser-of-" + anns,
		"another port":   "cove_8700=browser-of-" + anns,
		"TLS's name":     "__Host-cove=browser-of-" + anns,
		"not a cookie":   "\x01\xff\xfe;;;=;",
		"binary garbage": "cove_80=\x01\x02\xff",
	} {
		w := g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", cookie)
		want(t, name, w, 401)
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %q", name, w.Header().Get("Set-Cookie"))
		}
	}
	want(t, "the same twice", g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", annsCookie+"; "+annsCookie), 200)
	w := g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", "cove_80=broken")
	want(t, "the database is away", w, 503)
	if w.Header().Get("Set-Cookie") != "" {
		t.Error("the cookie is taken away because the database is away")
	}
}

func TestManyBadCookiesAreHeldBack(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	held := 0
	for range 50 {
		if g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", "cove_80=x").Code == http.StatusTooManyRequests {
			held++
		}
	}
	if held < 20 {
		t.Errorf("%d of 50 bad cookies were held back", held)
	}
	want(t, "a good one from the same address", g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", annsCookie), 200)
}

func TestTheCookiesName(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}, nil)
	plain := newRig(t, front.Options{}, nil)
	for name, c := range map[string]struct {
		g      *rig
		host   string
		tls    bool
		proto  string
		cookie string
	}{
		"a port":                    {plain, "localhost:8700", false, "", "cove_8700"},
		"an address":                {plain, "[::1]:8701", false, "", "cove_8701"},
		"no port":                   {plain, "localhost", false, "", "cove_80"},
		"not a port":                {plain, "localhost:a;b", false, "", "cove_80"},
		"TLS":                       {plain, "localhost:8700", true, "", "__Host-cove"},
		"anybody says https":        {plain, "localhost:8700", false, "https", "cove_8700"},
		"a trusted proxy":           {g, "localhost:8700", false, "HTTPS, http", "__Host-cove"},
		"a trusted proxy, no https": {g, "localhost:8700", false, "http", "cove_8700"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/things/1", nil)
		r.Host = c.host
		r.Header.Set("Cookie", c.cookie+"=old-of-ann")
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		c.g.ServeHTTP(w, r)
		want(t, name, w, 200)
		set := w.Result().Cookies()
		if len(set) != 1 {
			t.Fatalf("%s: %q", name, w.Header()["Set-Cookie"])
		}
		secure := strings.HasPrefix(c.cookie, "__Host-")
		if k := set[0]; k.Name != c.cookie || k.Value != "old-of-ann" || !k.HttpOnly || k.SameSite != http.SameSiteStrictMode || k.Path != "/" || k.Domain != "" ||
			k.Secure != secure || k.MaxAge < 29*24*3600 || k.MaxAge > 30*24*3600 {
			t.Errorf("%s: %q", name, w.Header().Get("Set-Cookie"))
		}
	}
}

// browser is a page's side of a whole server.
type browser struct {
	*whole
	cookie string
}

func (b *browser) ask(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("User-Agent", "Mozilla")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookie = c.Name + "=" + c.Value; c.MaxAge < 0 {
			b.cookie = ""
		}
	}
	return w
}

func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	code, err := w.accounts.NewCode(t.Context(), auth.Local(), "", "")
	must(t, err)
	b := &browser{whole: w}
	want(t, "before", b.ask(t, "GET", "/api/v1/me", ""), 401)
	in := b.ask(t, "POST", "/api/v1/sign-in", `{"code":"`+code+`"}`)
	want(t, "a code", in, 200)
	var me struct{ User, Project, Key, Browser, Role string }
	must(t, json.Unmarshal(in.Body.Bytes(), &me))
	if me.User != auth.LocalUser || me.Role != "owner" || me.Key != "" || !strings.HasPrefix(me.Browser, "brw_") {
		t.Errorf("signed in as %+v", me)
	}
	if set := in.Header().Get("Set-Cookie"); !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") || strings.Contains(in.Body.String(), strings.Split(b.cookie, "=")[1]) {
		t.Errorf("the cookie is %q", set)
	}
	want(t, "behind it", b.ask(t, "GET", "/api/v1/me", ""), 200)
	list := b.ask(t, "GET", "/api/v1/browsers", "")
	if !strings.Contains(list.Body.String(), `"agent":"Mozilla","ip":"192.0.2.1","current":true`) {
		t.Errorf("the browsers are %s", list.Body)
	}
	again := (&browser{whole: w}).ask(t, "POST", "/api/v1/sign-in", `{"code":"`+code+`"}`)
	want(t, "the code once more", again, 401)
	if codeOf(t, again) != "sign_in_code_used" || !strings.Contains(again.Body.String(), "cove open") || again.Header().Get("Set-Cookie") != "" {
		t.Errorf("the code once more: %s", again.Body)
	}
	old := b.cookie
	want(t, "signing out from another page", b.ask(t, "POST", "/api/v1/sign-out", "", "Sec-Fetch-Site", "cross-site"), 403)
	want(t, "signing out", b.ask(t, "POST", "/api/v1/sign-out", ""), 204)
	if b.cookie != "" {
		t.Error("the cookie is still there")
	}
	b.cookie = old
	want(t, "the old cookie", b.ask(t, "GET", "/api/v1/me", ""), 401)
	if b.cookie != "" {
		t.Error("the old cookie is still there")
	}
}

func TestSigningInWithAKey(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	mine := w.tenant(t, "mine")
	key := mine.keys[auth.Member]
	b, other := &browser{whole: w}, &browser{whole: w}
	want(t, "a key", b.ask(t, "POST", "/api/v1/sign-in", `{"key":"`+key+`"}`), 200)
	want(t, "a key in another browser", other.ask(t, "POST", "/api/v1/sign-in", `{"key":"`+key+`"}`), 200)
	want(t, "what a member may", b.ask(t, "POST", "/api/v1/conversations", `{}`), 201)
	want(t, "what a member may not", b.ask(t, "GET", "/api/v1/users", ""), 403)
	var me struct{ Browser, Key string }
	must(t, json.Unmarshal(other.ask(t, "GET", "/api/v1/me", "").Body.Bytes(), &me))
	want(t, "ending the other one", b.ask(t, "DELETE", "/api/v1/browsers/"+me.Browser, ""), 204)
	want(t, "the other one", other.ask(t, "GET", "/api/v1/me", ""), 401)
	_, err := w.accounts.RevokeKey(t.Context(), w.root, me.Key)
	must(t, err)
	want(t, "when the key is revoked", b.ask(t, "GET", "/api/v1/me", ""), 401)
	if b.cookie != "" {
		t.Error("the cookie is still there")
	}
	for body, status := range map[string]int{
		`{}`: 422, `{"code":"a","key":"b"}`: 422, `{"code":""}`: 422, `{"key":1}`: 422, `[]`: 422, `{"code":"` + strings.Repeat("x", 201) + `"}`: 422, `x`: 400, ``: 422,
		`{"code":"\u0000\uffff"}`: 401, `{"key":"` + key + `"}`: 401, `{"code":"` + strings.Repeat("0", 32) + `"}`: 401,
		`{"code":"` + strings.Repeat("x", 100_000) + `"}`: 413,
	} {
		got := (&browser{whole: w}).ask(t, "POST", "/api/v1/sign-in", body)
		if got.Code != status && (body != "" || got.Code != 400) {
			t.Errorf("%.50q is a %d, not a %d: %s", body, got.Code, status, got.Body)
		}
		if got.Header().Get("Set-Cookie") != "" {
			t.Errorf("%.50q sets a cookie", body)
		}
	}
	want(t, "from another page", b.ask(t, "POST", "/api/v1/sign-in", `{"key":"`+mine.keys[auth.Owner]+`"}`, "Sec-Fetch-Site", "cross-site"), 403)
}

func TestManyWrongSignInsAreHeldBack(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	mine := w.tenant(t, "mine")
	b, held := &browser{whole: w}, 0
	for i := range 50 {
		body := `{"code":"` + strings.Repeat("0", 32) + `"}`
		if i%2 == 0 {
			body = `{"key":"` + auth.NewText() + `"}`
		}
		if got := b.ask(t, "POST", "/api/v1/sign-in", body); got.Code == http.StatusTooManyRequests {
			held++
			if got.Header().Get("Retry-After") == "" {
				t.Fatal("it does not say when to come again")
			}
		}
	}
	if held < 20 {
		t.Errorf("%d of 50 were held back", held)
	}
	want(t, "a right key from the same address", b.ask(t, "POST", "/api/v1/sign-in", `{"key":"`+mine.keys[auth.Viewer]+`"}`), 200)
}

func TestABrowserWithoutAKeyHasARateOfItsOwn(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.KeyRate, l.ProjectRate = 1, 0; l.Burst = 2 })}, nil)
	limitedAt := 0
	for i := range 10 {
		if g.ask(t, "GET", "/api/v1/things/1", "", "Cookie", annsCookie).Code == 429 {
			limitedAt = i
			break
		}
	}
	if limitedAt == 0 {
		t.Error("a browser may send any number of requests")
	}
	want(t, "somebody else", g.ask(t, "GET", "/api/v1/things/1", bobs), 200)
}
