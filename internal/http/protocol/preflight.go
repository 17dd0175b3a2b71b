package protocol

import "net/http"

// Preflight answers what a browser asks before a page calls something that is not the server's own, and lets every page read what comes then. A token or a signature, which pages have to
// bring, decides who gets an answer.
func Preflight(w http.ResponseWriter, r *http.Request) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, *")
	w.WriteHeader(http.StatusNoContent)
	return true
}
