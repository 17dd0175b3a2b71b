// Package record has what the hub keeps: sessions, executions, conversations, turns, files and what belongs to them, and the interfaces of the store that keeps
// them. It changes when something else is to be recorded. It has no state, takes no locks and starts nothing: besides the records there are only checks of their
// fields and what follows from them.
package record
