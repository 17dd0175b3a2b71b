package named

// state is where an open session stands. Each part of it changes by a table of its own, a row for each event; on has what links them.
type state struct {
	ahead ahead  // of the head
	holds holder // what is ahead
	next  origin
}

// ahead is what has happened since the head was saved.
type ahead int

const (
	nothingAhead ahead = iota
	filesAhead         // files were put in or changed
	codeAhead          // code ran
	undoAhead          // code ran, and undo is to go back to the head
)

// holder is what has that which happened.
type holder int

const (
	inSandbox    holder = iota // all of it is there
	inFilesAlone               // a kernel died and took its variables along
	nowhere                    // the sandbox died, and no code has run in the next one
)

// origin is what the sandbox begins with that takes the place of a lost one.
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
	undoBegins // code begins that undo is to go back behind
	codeEnds   // and its kernel lives
	kernelDies
	sandboxDies
	headSaved      // and that is what a next sandbox begins with
	headSavedAside // a next sandbox would begin with what was the head before
)

// on is the state after an event. Code that begins when what was ahead is nowhere begins from the head.
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
		undoBegins:     {undoAhead, undoAhead, codeAhead, undoAhead}, // code that is still ahead could not be saved: undo would take it along
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
		headSaved:      {inSandbox, inSandbox, nowhere}, // it died just behind the save
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

// stranded says that the session cannot go on: its sandbox is lost, and the next one would not begin with the head.
func (s state) stranded() bool { return s.holds == nowhere && s.next == fromFormer }
