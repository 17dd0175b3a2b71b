package auth

// Hashes is how many passwords were hashed.
func (a *Accounts) Hashes() int64 { return a.hashing.done.Load() }
