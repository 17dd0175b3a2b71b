package e2e_test

import (
	"testing"

	"cove/internal/testkit/testneeds"
)

// What takes minutes by itself: parallel tests begin in the order of the names of files, and one that begins last runs alone at the end.

// TestPageWhole does in a real browser what people do with the page: web/e2e/main.mjs says what. COVE_PAGE_SCRIPT names another script beside that.
func TestPageWhole(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	page(t, "usual")
}

// TestScalePage does what takes much: every screen, in both languages and themes, many windows, a thousand turns, thousands of events, half a minute without a network.
func TestScalePage(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	page(t, "scale")
}
