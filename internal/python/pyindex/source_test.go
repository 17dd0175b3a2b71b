package pyindex_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

// realUV returns a uv: the one that cove has here, or one that is fetched as cove would.
func realUV(t *testing.T) string {
	t.Helper()
	return testneeds.FindUV(t)
}

func TestSources(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	uv := realUV(t)
	links, config, named := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(named, "uv", "uv.toml"), "[[index]]\nname = \"corp\"\nurl = \"https://corp.invalid/simple\"\n[[index]]\nname = \"hidden\"\nurl = \"https://hidden.invalid/simple\"\nexplicit = true\n"+
		"[[index]]\nname = \"flat\"\nurl = \"https://flat.invalid/links.html\"\nformat = \"flat\"\n[[index]]\nname = \"main\"\nurl = \"https://main.invalid/simple\"\ndefault = true\n")
	netrc := write(t, filepath.Join(t.TempDir(), "netrc"), "# mine\nmacdef init\nmachine corp.invalid login macro password macro\n\nmachine corp.invalid\n  login carl\n  password pw1\n"+
		"machine named.invalid login ned password pw2 machine other.invalid login o password p default login d password secret\n")
	conf := write(t, filepath.Join(config, "pip.conf"), "[global]\nindex-url = https://pip.invalid/simple\nextra-index-url = https://extra.invalid/simple\n  https://u:p@more.invalid/simple\n")
	index := func(name, place string) pyindex.Source { return pyindex.Source{Name: name, URL: place} }
	tests := []struct {
		name string
		set  []string
		want []pyindex.Source
	}{
		{"variables of uv", []string{"UV_DEFAULT_INDEX=main=https://bob:secret@main.invalid/simple", "UV_INDEX=a=https://a.invalid/simple https://b.invalid/simple/",
			"UV_FIND_LINKS=" + links + ",https://links.invalid/page.html"},
			[]pyindex.Source{{Name: links, Folder: links}, {Name: "links.invalid", URL: "https://links.invalid/page.html", Flat: true},
				index("a", "https://a.invalid/simple"), index("b.invalid", "https://b.invalid/simple/"), index("main", "https://bob:secret@main.invalid/simple")}},
		{"older variables of uv", []string{"UV_INDEX_URL=https://main.invalid/simple", "UV_EXTRA_INDEX_URL=https://a.invalid/simple https://main.invalid/simple"},
			[]pyindex.Source{index("a.invalid", "https://a.invalid/simple"), index("main.invalid", "https://main.invalid/simple")}},
		{"uv's file", []string{"XDG_CONFIG_HOME=" + named}, []pyindex.Source{index("corp", "https://corp.invalid/simple"), {Name: "flat", URL: "https://flat.invalid/links.html", Flat: true}, index("main", "https://main.invalid/simple")}},
		{"pip's file", []string{"PIP_CONFIG_FILE=" + conf, "PIP_FIND_LINKS=" + links},
			[]pyindex.Source{{Name: links, Folder: links}, index("extra.invalid", "https://extra.invalid/simple"), index("more.invalid", "https://u:p@more.invalid/simple"), index("pip.invalid", "https://pip.invalid/simple")}},
		{"no index", []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + links}, []pyindex.Source{{Name: links, Folder: links}}},
		{"a folder as URL", []string{"UV_DEFAULT_INDEX=https://main.invalid/simple", "UV_FIND_LINKS=file://" + links}, []pyindex.Source{{Name: links, Folder: links}, index("main.invalid", "https://main.invalid/simple")}},
		{"credentials in variables", []string{"UV_DEFAULT_INDEX=my-index.1=https://main.invalid/simple", "UV_INDEX_MY_INDEX_1_USERNAME=bob", "UV_INDEX_MY_INDEX_1_PASSWORD=s/e:c"},
			[]pyindex.Source{index("my-index.1", "https://bob:s%2Fe%3Ac@main.invalid/simple")}},
		{"credentials of uv's file", []string{"XDG_CONFIG_HOME=" + named, "UV_INDEX_CORP_PASSWORD=token"},
			[]pyindex.Source{index("corp", "https://:token@corp.invalid/simple"), {Name: "flat", URL: "https://flat.invalid/links.html", Flat: true}, index("main", "https://main.invalid/simple")}},
		{"netrc", []string{"NETRC=" + netrc, "UV_DEFAULT_INDEX=https://corp.invalid/simple", "UV_INDEX=https://ned@named.invalid/a https://x@named.invalid/b https://free.invalid/c"},
			[]pyindex.Source{index("named.invalid", "https://ned:pw2@named.invalid/a"), index("named.invalid", "https://x@named.invalid/b"), index("free.invalid", "https://free.invalid/c"),
				index("corp.invalid", "https://carl:pw1@corp.invalid/simple")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := pyindex.Sources(t.Context(), append(home(t), tt.set...), "", uv)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	// Without any setting there is the one that uv has by default, and it has no credentials.
	got, _, err := pyindex.Sources(t.Context(), home(t), "", uv)
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0].URL, "https://") || strings.Contains(got[0].URL, "@") || got[0].Name == "" {
		t.Errorf("by default: %+v, %v", got, err)
	}
}

// quiet is a uv that knows of one index.
func quiet(t *testing.T) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "uv"), "#!/bin/sh\necho '--index-url https://main.invalid/simple'\n")
}

func TestSettingsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	failing := write(t, filepath.Join(t.TempDir(), "uv"), "#!/bin/sh\necho 'error: no URL: https://bob:secret@main.invalid:x/' >&2\nexit 2\n")
	notPEM := write(t, filepath.Join(t.TempDir(), "client.pem"), "nothing")
	for name, tt := range map[string]struct{ uv, setting string }{
		"uv fails":                 {failing, "X=1"},
		"no folder":                {realUV(t), "UV_FIND_LINKS=/nonexistent/wheels"},
		"no uv":                    {"/nonexistent/uv", "X=1"},
		"a proxy that is no URL":   {quiet(t), "HTTPS_PROXY=http://bob:secret@[::1/"},
		"a proxy of another kind":  {quiet(t), "ALL_PROXY=ftp://bob:secret@proxy.invalid"},
		"a client certificate":     {quiet(t), "SSL_CLIENT_CERT=" + notPEM},
		"a certificate not there":  {quiet(t), "SSL_CLIENT_CERT=/nonexistent"},
		"pip's client certificate": {quiet(t), "PIP_CLIENT_CERT=/nonexistent"},
	} {
		_, _, err := pyindex.Sources(t.Context(), home(t, tt.setting), "", tt.uv)
		p := problem.Of(err)
		if p == nil || p.Code != "index_settings_invalid" || p.Hint == "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := pyindex.Sources(ctx, home(t), "", quiet(t))
	if p := problem.Of(err); p == nil || p.Code != "canceled" {
		t.Errorf("canceled: %v", err)
	}
}

func TestProxies(t *testing.T) {
	t.Parallel()
	toml := t.TempDir()
	write(t, filepath.Join(toml, "uv", "uv.toml"), "http-proxy = \"http://toml:1\"\nhttps-proxy = \"http://toml:2\"\nno-proxy = [\"free.invalid\"]\nallow-insecure-host = [\"old.invalid\"]\n")
	for _, tt := range []struct {
		set   []string
		place string
		want  string
	}{
		{nil, "https://index.invalid/", ""},
		{[]string{"HTTPS_PROXY=http://up:1"}, "https://index.invalid/", "http://up:1"},
		{[]string{"HTTPS_PROXY=http://up:1"}, "http://index.invalid/", ""},
		{[]string{"http_proxy=low:1", "HTTP_PROXY=http://up:1"}, "http://index.invalid/", "http://low:1"},
		{[]string{"ALL_PROXY=socks5h://all:1"}, "http://index.invalid/", "socks5h://all:1"},
		{[]string{"ALL_PROXY=http://all:1", "NO_PROXY=other.invalid,index.invalid"}, "http://files.index.invalid/", ""},
		{[]string{"PIP_PROXY=http://pip:1"}, "https://index.invalid/", "http://pip:1"},
		{[]string{"XDG_CONFIG_HOME=" + toml}, "https://index.invalid/", "http://toml:2"},
		{[]string{"XDG_CONFIG_HOME=" + toml, "HTTPS_PROXY=http://up:1"}, "https://index.invalid/", "http://up:1"},
		{[]string{"XDG_CONFIG_HOME=" + toml}, "https://free.invalid/", ""},
	} {
		_, access, err := pyindex.Sources(t.Context(), append(home(t), tt.set...), "", quiet(t))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.place, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := access.Proxy(r)
		if text := ""; err != nil || got != nil && got.String() != tt.want || got == nil && tt.want != text {
			t.Errorf("%v: %s through %v, %v", tt.set, tt.place, got, err)
		}
		if insecure := strings.Join(access.Insecure, " "); strings.Contains(strings.Join(tt.set, " "), toml) != (insecure == "old.invalid") {
			t.Errorf("%v: hosts that are not checked: %s", tt.set, insecure)
		}
	}
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, filepath.Join(t.TempDir(), "client.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	for _, variable := range []string{"SSL_CLIENT_CERT", "PIP_CLIENT_CERT"} {
		_, access, err := pyindex.Sources(t.Context(), home(t, variable+"="+path), "", quiet(t))
		if err != nil || len(access.TLS.Certificates) != 1 || access.TLS.RootCAs != nil {
			t.Errorf("%s: %+v, %v", variable, access.TLS, err)
		}
	}
}
