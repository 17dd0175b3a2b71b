package ondisk

// state says what an open session has beyond its head. Each of its parts changes by a table of its own, with a row for each event; on has the rules that link
// the parts.
type state struct {
	ahead ahead  // what has changed since the head was saved
	holds holder // where these changes are
	next  origin
}

// ahead is what has happened since the head was saved.
type ahead int

const (
	nothingAhead ahead = iota
	filesAhead         // clients changed files
	codeAhead          // code ran
	undoAhead          // code ran, and undo is to go back to the head
)

// holder says where the changes since the head are.
type holder int

const (
	inSandbox    holder = iota // all of them
	inFilesAlone               // a kernel died with its variables; the changes to files are in the sandbox
	nowhere                    // the sandbox died, and no code has run in the next one
)

// origin is what the next sandbox starts from when the present one is lost.
type origin int

const (
	fromHead   origin = iota
	fromFormer        // from what was the head before the last save, or from one that does not fit
)

// event is what happens to an open session.
type event int

const (
	filesChange event = iota
	codeBegins
	undoBegins // code begins that undo is to revert
	codeEnds   // and its kernel lives
	kernelDies
	sandboxDies
	headSaved      // and the next sandbox would start from it
	headSavedAside // the next sandbox would start from the head before
)

// on returns the state after an event. When code begins after the unsaved changes were lost, it begins from the head.
func (s state) on(e event) state {
	if s.holds == nowhere && (e == codeBegins || e == undoBegins) {
		s.ahead = nothingAhead
	}
	return state{s.ahead.after(e), s.holds.after(e), s.next.after(e)}
}

func (a ahead) after(e event) ahead {
	return [...][4]ahead{
		//              nothing       files         code          undo
		filesChange:    {filesAhead, filesAhead, codeAhead, undoAhead},
		codeBegins:     {codeAhead, codeAhead, codeAhead, undoAhead},
		undoBegins:     {undoAhead, undoAhead, codeAhead, undoAhead}, // earlier code could not be saved: undo would revert it too
		codeEnds:       {nothingAhead, filesAhead, codeAhead, undoAhead},
		kernelDies:     {nothingAhead, filesAhead, codeAhead, undoAhead},
		sandboxDies:    {nothingAhead, filesAhead, codeAhead, undoAhead},
		headSaved:      {nothingAhead, nothingAhead, nothingAhead, nothingAhead},
		headSavedAside: {nothingAhead, nothingAhead, nothingAhead, nothingAhead},
	}[e][a]
}

func (h holder) after(e event) holder {
	return [...][3]holder{
		//              sandbox       files         nowhere
		filesChange:    {inSandbox, inFilesAlone, nowhere},
		codeBegins:     {inSandbox, inFilesAlone, nowhere},
		undoBegins:     {inSandbox, inFilesAlone, nowhere},
		codeEnds:       {inSandbox, inFilesAlone, inSandbox},
		kernelDies:     {inFilesAlone, inFilesAlone, inFilesAlone},
		sandboxDies:    {nowhere, nowhere, nowhere},
		headSaved:      {inSandbox, inSandbox, nowhere}, // the sandbox died right after the save
		headSavedAside: {inSandbox, inSandbox, nowhere},
	}[e][h]
}

func (o origin) after(e event) origin {
	switch e {
	case headSaved:
		return fromHead
	case headSavedAside:
		return fromFormer
	}
	return o
}

// codeRan says that code ran since the head was saved.
func (s state) codeRan() bool { return s.ahead == codeAhead || s.ahead == undoAhead }

// unrecoverable says that the session cannot go on: its sandbox is lost, and the next one would not start from the head.
func (s state) unrecoverable() bool { return s.holds == nowhere && s.next == fromFormer }
