package sharedmem

import "errors"

// Set is the heaps of one sandbox. It is a value: With makes another one.
type Set []*Heap

// With returns the heaps of s and one more.
func (s Set) With(h *Heap) Set { return append(s[:len(s):len(s)], h) }

// Close lets the heaps go.
func (s Set) Close() error {
	var err error
	for _, h := range s {
		err = errors.Join(err, h.Close())
	}
	return err
}

// Intact returns a problem with code "memory_changed" when the file of one of the heaps was changed; see Heap.Intact.
func (s Set) Intact() error {
	for _, h := range s {
		if err := h.Intact(); err != nil {
			return err
		}
	}
	return nil
}

// Attach notes in the checkpoint in the folder image that it needs the heaps, and keeps them there.
func (s Set) Attach(image string) error {
	for _, h := range s {
		if err := h.Attach(image); err != nil {
			return err
		}
	}
	return nil
}
