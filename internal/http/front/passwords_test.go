package front_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/server/auth"
)

const battery = "correct horse battery"

// post sends JSON from an address.
func (w *whole) post(t *testing.T, from, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1"+path, strings.NewReader(body))
	r.RemoteAddr = from + ":1234"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out
}

func (w *whole) invite(t *testing.T, n auth.NewInvitation) string {
	t.Helper()
	_, code, err := w.accounts.Invite(t.Context(), w.root, n)
	must(t, err)
	return code
}

// TestAnInvitationSignsABrowserIn goes the whole way of a new user.
func TestAnInvitationSignsABrowserIn(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	code := w.invite(t, auth.NewInvitation{Role: auth.Member})
	want(t, "looking", w.post(t, "192.0.2.1", "/invitations/look", `{"code":"`+code+`"}`), 200)
	from := w.post(t, "192.0.2.1", "/invitations/accept", `{"code":"`+code+`","user":"eve","password":"`+battery+`"}`, "Sec-Fetch-Site", "cross-site")
	want(t, "another site's page", from, 403)
	accepted := w.post(t, "192.0.2.1", "/invitations/accept", `{"code":"`+code+`","user":"Eve","password":"`+battery+`"}`)
	want(t, "accepting", accepted, 200)
	cookie, _, _ := strings.Cut(accepted.Header().Get("Set-Cookie"), ";")
	signedIn := w.post(t, "192.0.2.1", "/sign-in", `{"user":"EVE","password":"`+battery+`"}`)
	want(t, "signing in", signedIn, 200)
	other, _, _ := strings.Cut(signedIn.Header().Get("Set-Cookie"), ";")
	if cookie == "" || other == "" || cookie == other {
		t.Fatalf("the cookies are %q and %q", cookie, other)
	}

	// a browser that is signed in moves to the project that it is invited to
	p, err := w.accounts.CreateProject(t.Context(), w.root, "second")
	must(t, err)
	second := w.invite(t, auth.NewInvitation{Role: auth.Viewer, Project: p.ID})
	moved := w.post(t, "192.0.2.1", "/invitations/accept", `{"code":"`+second+`"}`, "Cookie", other)
	want(t, "joining", moved, 200)
	if !strings.Contains(moved.Body.String(), p.ID) || moved.Header().Get("Set-Cookie") == "" {
		t.Errorf("joined: %s, %q", moved.Body, moved.Header().Get("Set-Cookie"))
	}
	third := w.invite(t, auth.NewInvitation{Role: auth.Viewer, Project: p.ID})
	want(t, "with a bad cookie", w.post(t, "192.0.2.1", "/invitations/accept", `{"code":"`+third+`"}`, "Cookie", "cove_80=x"), 401)

	for at, status := range map[string]int{cookie: 204, other: 401} {
		r := httptest.NewRequestWithContext(t.Context(), "PUT", "/api/v1/me/password", strings.NewReader(`{"current":"`+battery+`","password":"another horse"}`))
		r.Header.Set("Cookie", at)
		out := httptest.NewRecorder()
		w.ServeHTTP(out, r)
		want(t, "a new password with "+at, out, status)
	}
	want(t, "the old password", w.post(t, "192.0.2.1", "/sign-in", `{"user":"eve","password":"`+battery+`"}`), 401)
	want(t, "two ways at once", w.post(t, "192.0.2.1", "/sign-in", `{"user":"eve","password":"x","code":"y"}`), 422)
}

// TestPasswordsAreNotGuessed: neither from one address nor for one name from many; a name that nobody has is held back alike.
func TestPasswordsAreNotGuessed(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	_, err := w.accounts.AcceptInvitation(t.Context(), auth.Principal{}, auth.Acceptance{Code: w.invite(t, auth.NewInvitation{Role: auth.Member}), Login: "eve", Password: battery})
	must(t, err)
	var held *httptest.ResponseRecorder
	for _, name := range []string{"nobody", "eve"} {
		wrong := 0
		for i := range 200 {
			got := w.post(t, fmt.Sprintf("198.51.%d.%d", len(name), i), "/sign-in", `{"user":"`+name+`","password":"wrong password"}`)
			if got.Code == http.StatusTooManyRequests {
				break
			}
			want(t, "a wrong password", got, 401)
			wrong++
		}
		if wrong < 19 || wrong > 60 {
			t.Errorf("%d wrong passwords for %s were looked at", wrong, name)
		}
		held = w.post(t, "203.0.113.1", "/sign-in", `{"user":"Eve","password":"`+battery+`"}`)
	}
	want(t, "the right one among too many", held, 429)
	if held.Header().Get("Retry-After") == "" {
		t.Error("nobody is told when to come again")
	}
	seen := map[int]int{}
	for i := 0; i < 200 && seen[http.StatusTooManyRequests] < 3; i++ { // where each takes seconds, some more are let through meanwhile
		seen[w.post(t, "203.0.113.9", "/sign-in", fmt.Sprintf(`{"user":"u%d","password":"wrong password"}`, i)).Code]++
	}
	if seen[http.StatusTooManyRequests] < 3 || seen[http.StatusUnauthorized] < 19 {
		t.Errorf("wrong passwords from one address are %v", seen)
	}
	for i := range 25 {
		seen[w.post(t, "203.0.113.20", "/invitations/look", fmt.Sprintf(`{"code":"%032d"}`, i)).Code]++
	}
	if seen[http.StatusForbidden] < 20 || w.post(t, "203.0.113.20", "/invitations/look", `{"code":"x"}`).Code != 429 {
		t.Errorf("wrong codes from one address are %v", seen)
	}
}
