package front

import "net/http"

// chain puts around the routes what every request passes, from the outside to the inside. The order is part of the security of the server.
func (s *Server) chain(routes http.Handler) http.Handler {
	h := s.noting(routes)   // 11. which route it was, for the log and the metrics outside
	h = s.bodies(h)         // 10. how long a body may be; short ones are read before anything starts
	h = s.admitting(h)      //  9. how many at the same time: only callers with a key wait for room
	h = s.rating(h)         //  8. how many in a second, by key and project
	h = s.authenticating(h) //  7. who calls; everything after it has a caller, but for public routes
	h = s.crossOrigin(h)    //  6. which web pages may call; answers preflights, which have no key
	h = s.hosts(h)          //  5. by which name the server may be called
	h = s.tracing(h)        //  4. a span that all others are in; refused requests are seen as well
	h = s.logging(h)        //  3. one line and one measurement for every request
	h = s.identifying(h)    //  2. a request's id, which the line and the answer have
	h = s.slow(h)           //  1. slow readers and writers are cut off, also where a request is refused
	h = s.recovering(h)     //  0. a fault in any of them costs one request
	return s.counting(h)    // -1. who is still there when the server stops
}
