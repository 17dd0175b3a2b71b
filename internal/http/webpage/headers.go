package webpage

import "strings"

// What the page may do. Styles that scripts add carry the nonce; everything comes from this server.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-R'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; frame-src 'self'; worker-src 'self'; manifest-src 'self'; media-src 'self' blob:; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types cove default"

// framePolicy is for the shell in which the page shows what code made: an origin of its own, without any connection.
const framePolicy = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; " +
	"font-src data:; connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// scriptsPolicy is for the same shell where somebody has asked to run the scripts that are in such output. Its origin is none, and nothing can be reached from it.
var scriptsPolicy = strings.Replace(framePolicy, "script-src 'self'", "script-src 'self' 'unsafe-inline' 'unsafe-eval'", 1)

const (
	scriptPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'" // of workers, which have their file's policy
	filePolicy   = "default-src 'none'; style-src 'unsafe-inline'; sandbox"    // of files that somebody opens by themselves
)

func indexHeaders(nonce string) map[string]string {
	return with(map[string]string{
		"Content-Type":                 "text/html; charset=utf-8",
		"Cache-Control":                "no-store",
		"Content-Security-Policy":      strings.Replace(pagePolicy, "nonce-R", "nonce-"+nonce, 1),
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), microphone=(), geolocation=(), usb=(), clipboard-read=(self), clipboard-write=(self)",
		"Vary":                         "Accept",
	})
}

func frameHeaders(policy string) map[string]string {
	return with(map[string]string{
		"Content-Type":                 "text/html; charset=utf-8",
		"Cache-Control":                "public, no-cache",
		"Content-Security-Policy":      policy,
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), microphone=(), geolocation=(), usb=(), clipboard-read=(), clipboard-write=()",
	})
}

// assetHeaders are those of what never changes. What is for the frame is read by a page of no origin.
func assetHeaders(name, kind string) map[string]string {
	h := map[string]string{"Content-Type": kind, "Cache-Control": "public, max-age=31536000, immutable", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": policyOf(kind)}
	if parts := strings.SplitN(name, "/", 4); len(parts) == 4 && parts[2] == "frame" {
		h["Cross-Origin-Resource-Policy"], h["Access-Control-Allow-Origin"] = "cross-origin", "*"
	}
	return with(h)
}

// looseHeaders are those of files whose address stays the same when they change.
func looseHeaders(kind string) map[string]string {
	return with(map[string]string{"Content-Type": kind, "Cache-Control": "public, no-cache", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": policyOf(kind)})
}

func policyOf(kind string) string {
	if strings.HasPrefix(kind, "text/javascript") {
		return scriptPolicy
	}
	return filePolicy
}

// with adds what all answers have.
func with(h map[string]string) map[string]string {
	h["X-Content-Type-Options"], h["Referrer-Policy"] = "nosniff", "no-referrer"
	return h
}
