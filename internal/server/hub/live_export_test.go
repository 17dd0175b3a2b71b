package hub

// Tail is how much of a stream that runs is in memory, in bytes.
func (h *Hub) Tail(id string) int {
	size, _ := h.streams.Held(id)
	return size
}

// Stored is the number of the last event of a stream that runs which the store has.
func (h *Hub) Stored(id string) int64 {
	_, stored := h.streams.Held(id)
	return stored
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

// Free says whether nobody uses a session in memory.
func (h *Hub) Free(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[session]
	return s != nil && s.free()
}
