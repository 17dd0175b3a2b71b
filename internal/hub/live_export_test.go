package hub

// Tail is how much of a stream that runs is in memory, in bytes.
func (h *Hub) Tail(stream string) int {
	h.mu.Lock()
	l := h.logs[stream]
	h.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Stored is the number of the last event of a stream that runs which the store has.
func (h *Hub) Stored(stream string) int64 {
	h.mu.Lock()
	l := h.logs[stream]
	h.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved
}

// Waiting is how many executions wait for a slot.
func (h *Hub) Waiting() int {
	h.slots.mu.Lock()
	defer h.slots.mu.Unlock()
	n := 0
	for _, w := range h.slots.waiting {
		n += len(w)
	}
	return n
}
