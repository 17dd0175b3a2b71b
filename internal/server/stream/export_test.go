package stream

// Cost is what an event counts for besides its body, in bytes.
const Cost = eventCost

// Small makes the bounds small, in bytes: of the tail, of what is not stored, of what one follower takes at once, and of one transaction.
func (s *Streams) Small(tail, unsaved, batch, commit int) {
	s.bounds = bounds{tail, unsaved, batch}
	s.commit.size = commit
}

// Unsaved is how many bytes of an open stream's events are not stored.
func (s *Streams) Unsaved(stream string) int {
	w := s.open(stream)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsaved
}
